/* The live stream of a page (ES module, no inline code).

   The page names its stream on one element:
     data-stream-url="/ws/campaigns/42/"  data-stream-after="17"  data-stream-poll="/api/v1/campaigns/42/events"
   and marks what follows it:
     .conn                                     gets the state of the connection as a word
     [data-feed] (ol)                          gets one li per durable event, newest first
     [data-feed-count] [data-feed-head]        how many are listed, of how many; [data-feed-more] shows while some are not
     [data-refresh-on="round.verdict round.*"] gets a "refresh" event (htmx: hx-trigger="refresh"); "*" means any
     [data-stepper="<round>"] with [data-stage] and [data-clock] inside    follows the progress frames of that round,
                                               while data-open says that it has not ended
     [data-progress]                           gets the sentence of the last progress frame
   Events are facts with gapless numbers: what was missed is asked for again, what was seen is ignored.
   Without this script every page still reads and decides; it is only older. */

const ACK_EVERY = 25;
const ACK_AFTER_MS = 1000;
const BACKOFF_MS = [500, 1000, 2000, 4000, 8000, 15000, 30000];
const POLL_AFTER_TRIES = 3;
const POLL_MS = 3000;
const SILENCE_MS = 45000;
const RECONNECTED_SHOWN_MS = 8000;
const REFRESH_MS = 200;
const FEED_LIMIT = 500;
const ENDS = /^(round\.(concluded|failed|cancelled)|campaign\.(paused|plateau|finished|stopped|failed))$/;
const FINAL = {
  4401: ["Signed out", "Your session ended. What you typed is kept in this page; sign in again in another tab and reload."],
  4403: ["No access", "You are no longer allowed to follow this stream. Ask a maintainer of the team."],
  4404: ["Not found", "This stream does not exist, or belongs to another team."],
};

class Page {
  constructor(host) {
    this.host = host;
    this.pending = new Set();
    this.timer = null;
    setInterval(() => this.tick(), 1000);
  }

  state(name, word, title = "") {
    for (const node of document.querySelectorAll(".conn")) {
      node.dataset.state = name;
      node.classList.toggle("live", name === "live" || name === "reconnected");
      node.title = title;
      let pulse = node.querySelector(".pulse");
      if (!pulse) {
        pulse = document.createElement("span");
        pulse.className = "pulse";
        pulse.setAttribute("aria-hidden", "true");
      }
      if (node.textContent !== word) node.replaceChildren(pulse, word);
    }
  }

  event(frame) {
    this.feed(frame);
    this.host.dataset.streamAfter = String(frame.seq);
    if (ENDS.test(frame.kind)) this.ended();
    for (const region of document.querySelectorAll("[data-refresh-on]")) {
      if (region.dataset.refreshOn.split(/\s+/).some((rule) => matches(rule, frame.kind))) this.pending.add(region);
    }
    if (this.pending.size && this.timer === null) this.timer = setTimeout(() => this.refresh(), REFRESH_MS);
    document.dispatchEvent(new CustomEvent("stream:event", { detail: frame }));
  }

  refresh() {
    this.timer = null;
    const regions = [...this.pending];
    this.pending.clear();
    for (const region of regions) {
      if (!region.isConnected) continue;
      if (window.htmx) window.htmx.trigger(region, "refresh");
      else region.dispatchEvent(new CustomEvent("refresh", { bubbles: true }));
    }
  }

  feed(frame) {
    const list = document.querySelector("[data-feed]");
    if (!list || list.querySelector(`[data-seq="${frame.seq}"]`)) return;
    const item = document.createElement("li");
    item.dataset.seq = String(frame.seq);
    item.dataset.kind = frame.kind;
    const at = new Date(frame.at);
    const time = document.createElement("time");
    time.dateTime = frame.at;
    time.title = frame.at;
    time.textContent = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    const text = document.createElement("span");
    const seq = document.createElement("span");
    seq.className = "seq";
    seq.textContent = String(frame.seq);
    text.append(`${frame.text || frame.kind} `, seq);
    item.append(time, icon("i-dot"), text);
    list.prepend(item);
    list.querySelector("[data-empty]")?.remove();
    while (list.children.length > FEED_LIMIT) list.lastElementChild.remove();
    this.count(list.querySelectorAll("[data-seq]").length, frame.seq);
  }

  count(listed, head) {
    for (const node of document.querySelectorAll("[data-feed-count]")) node.textContent = String(listed);
    for (const node of document.querySelectorAll("[data-feed-head]")) node.textContent = String(head);
    for (const node of document.querySelectorAll("[data-feed-more]")) node.hidden = listed >= head;
  }

  /* What ran has ended: a frame of it that comes late says nothing about what the page shows from now on. */
  ended() {
    this.running = null;
    for (const node of document.querySelectorAll("[data-progress]")) node.textContent = "";
    for (const stepper of document.querySelectorAll("[data-stepper]")) {
      stepper.removeAttribute("data-open");
      for (const step of stepper.querySelectorAll(".on")) {
        step.classList.remove("on");
        step.removeAttribute("aria-current");
      }
    }
  }

  progress(data) {
    const stepper = document.querySelector("[data-stepper][data-open]");
    if (!stepper || stepper.dataset.stepper !== String(data.round)) return;
    for (const node of document.querySelectorAll("[data-progress]")) node.textContent = data.text || data.stage;
    const steps = [...stepper.querySelectorAll("[data-stage]")];
    const at = steps.findIndex((step) => step.dataset.stage === data.stage);
    if (!data.stage) this.again(stepper);
    if (at < 0) return;
    const clocks = data.clocks ?? {};
    this.running = { step: steps[at], since: performance.now() - 1000 * (clocks[data.stage] ?? 0), data };
    steps.forEach((step, index) => {
      step.classList.toggle("on", index === at);
      step.classList.toggle("done", index < at);
      if (index >= at) step.classList.remove("fail");
      if (index === at) step.setAttribute("aria-current", "step");
      else step.removeAttribute("aria-current");
      const seconds = clocks[step.dataset.stage];
      const clock = step.querySelector("[data-clock]");
      if (clock && index < at && seconds !== undefined) clock.textContent = duration(seconds);
      if (clock && index > at) clock.textContent = "";
    });
    this.tick();
  }

  /* The attempt that ran came to nothing: its stages go, and the server says what waits now. */
  again(stepper) {
    this.running = null;
    for (const node of document.querySelectorAll("[data-progress]")) node.textContent = "";
    const region = stepper.closest("[data-refresh-on]");
    if (region) this.pending.add(region);
    if (this.pending.size && this.timer === null) this.timer = setTimeout(() => this.refresh(), REFRESH_MS);
  }

  /* The running stage's clock goes on between frames. */
  tick() {
    const running = this.running;
    if (!running?.step.isConnected || !running.step.classList.contains("on")) return;
    if (running.step.closest("[data-stepper]").dataset.stepper !== String(running.data.round)) return;
    const clock = running.step.querySelector("[data-clock]");
    const { done, total } = running.data;
    const count = total > 0 ? `${done}/${total}, ` : "";
    if (clock) clock.textContent = count + duration((performance.now() - running.since) / 1000);
  }
}

class Stream {
  constructor(host, page) {
    this.page = page;
    this.url = host.dataset.streamUrl;
    this.pollUrl = host.dataset.streamPoll;
    this.last = Number(host.dataset.streamAfter || 0);
    this.acked = this.last;
    this.tries = 0;
    this.opened = false;
    this.stopped = false;
    this.behindAtBeat = null;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.hurry(); });
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", (event) => { if (event.persisted) { this.stopped = false; this.connect(); } });
    this.connect();
  }

  connect() {
    clearTimeout(this.retry);
    clearInterval(this.countdown);
    if (this.stopped || this.socket) return;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${this.url}?after=${this.last}`);
    this.socket = socket;
    this.resumedFrom = this.last;
    socket.addEventListener("message", (message) => { if (this.socket === socket) this.receive(message.data); });
    socket.addEventListener("close", (event) => { if (this.socket === socket) this.lost(event.code); });
  }

  receive(text) {
    let frame;
    try { frame = JSON.parse(text); } catch { return; }
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.reopen(), SILENCE_MS);
    if (frame.seq !== undefined) this.durable(frame);
    else if (frame.kind === "ready") this.ready(frame.data.head);
    else if (frame.kind === "progress") this.page.progress(frame.data);
    else if (frame.kind === "beat") this.beat(frame.data.head);
    else if (frame.kind === "agent.delta") document.dispatchEvent(new CustomEvent("stream:answer", { detail: frame.data }));
  }

  durable(frame) {
    if (frame.seq <= this.last) return;
    if (frame.seq !== this.last + 1) { this.reopen(); return; }
    this.last = frame.seq;
    this.page.event(frame);
    if (this.catchUpTo !== null && this.last >= this.catchUpTo) this.caughtUp();
    if (this.last - this.acked >= ACK_EVERY) this.acknowledge();
    else this.ackTimer ??= setTimeout(() => this.acknowledge(), ACK_AFTER_MS);
  }

  acknowledge() {
    clearTimeout(this.ackTimer);
    this.ackTimer = null;
    if (this.acked !== this.last) this.answer();
  }

  /* Also without news, after a beat: it shows the server that somebody still reads. */
  answer() {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    this.acked = this.last;
    this.socket.send(JSON.stringify({ kind: "ack", seq: this.last }));
  }

  ready(head) {
    this.stopPolling();
    this.tries = 0;
    this.acked = this.last;
    this.behindAtBeat = null;
    this.catchUpTo = head;
    if (head <= this.last) this.caughtUp();
    else this.page.state("live", "Live", `Catching up to event ${head}`);
  }

  caughtUp() {
    this.catchUpTo = null;
    clearTimeout(this.settle);
    if (!this.opened) { this.opened = true; this.page.state("live", "Live"); return; }
    const first = this.resumedFrom + 1;
    const word = this.last >= first
      ? `Reconnected (replayed ${first} to ${this.last}, none missed)` : "Reconnected (none missed)";
    this.page.state("reconnected", word);
    this.settle = setTimeout(() => this.page.state("live", "Live"), RECONNECTED_SHOWN_MS);
  }

  /* The server's head stands above ours for two beats with nothing coming: ask again from where we are. */
  beat(head) {
    this.answer();
    const stuck = head > this.last && this.behindAtBeat === this.last;
    this.behindAtBeat = head > this.last ? this.last : null;
    if (stuck) this.reopen();
  }

  lost(code) {
    this.drop();
    if (FINAL[code]) {
      this.stopped = true;
      this.stopPolling();
      this.page.state("ended", ...FINAL[code]);
      return;
    }
    this.opened = true;
    this.tries += 1;
    if (this.tries >= POLL_AFTER_TRIES) this.startPolling();
    const base = BACKOFF_MS[Math.min(this.tries - 1, BACKOFF_MS.length - 1)];
    const wait = base * (0.75 + Math.random() / 2);
    const until = performance.now() + wait;
    const say = () => {
      if (this.polling) return;
      const seconds = Math.max(1, Math.ceil((until - performance.now()) / 1000));
      this.page.state("lost", `Lost (next try in ${seconds} s)`, `You see event ${this.last} and older; the work itself goes on.`);
    };
    say();
    this.countdown = setInterval(say, 1000);
    this.retry = setTimeout(() => this.connect(), wait);
  }

  hurry() {
    if (!this.stopped && !this.socket) this.connect();
  }

  /* A fresh connection from the last event seen. */
  reopen() {
    this.drop();
    this.connect();
  }

  drop() {
    const socket = this.socket;
    this.socket = null;
    clearTimeout(this.silence);
    clearTimeout(this.ackTimer);
    this.ackTimer = null;
    clearTimeout(this.settle);
    clearInterval(this.countdown);
    if (socket && socket.readyState <= WebSocket.OPEN) socket.close();
  }

  close() {
    this.stopped = true;
    this.stopPolling();
    clearTimeout(this.retry);
    this.drop();
  }

  startPolling() {
    if (this.polling || !this.pollUrl) return;
    this.polling = setInterval(() => this.poll(), POLL_MS);
    this.poll();
  }

  stopPolling() {
    clearInterval(this.polling);
    this.polling = null;
  }

  async poll() {
    if (this.pollRunning) return;
    this.pollRunning = true;
    try {
      const answer = await fetch(`${this.pollUrl}?after=${this.last}`, { headers: { Accept: "application/json" } });
      const code = { 401: 4401, 403: 4403, 404: 4404 }[answer.status] ?? (answer.redirected ? 4401 : null);
      if (code) { clearTimeout(this.retry); this.lost(code); return; }
      if (!answer.ok) throw new Error(String(answer.status));
      const { events } = await answer.json();
      if (!this.polling) return;
      for (const frame of events) {
        if (frame.seq !== this.last + 1) continue;
        this.last = frame.seq;
        this.page.event(frame);
      }
      this.page.state("polling", "Polling", `The live connection is down; events arrive every ${POLL_MS / 1000} s. Nothing is missed.`);
    } catch {
      if (this.polling) this.page.state("lost", "Lost (next try in 3 s)", `You see event ${this.last} and older.`);
    } finally {
      this.pollRunning = false;
    }
  }
}

function matches(rule, kind) {
  return rule === "*" || rule === kind || (rule.endsWith(".*") && kind.startsWith(rule.slice(0, -1)));
}

function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)}\u202Fs`;
  if (seconds < 60) return `${Math.round(seconds)}\u202Fs`;
  return `${Math.floor(seconds / 60)}\u202Fmin ${Math.round(seconds % 60)}\u202Fs`;
}

function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("class", "i");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(space, "use");
  use.setAttribute("href", `#${name}`);
  svg.append(use);
  return svg;
}

const host = document.querySelector("[data-stream-url]");
if (host) new Stream(host, new Page(host));
