/* Answers of a language model while they come in. Everything is text: nothing that a model says is ever markup.

   A frame carries the end of an answer and where that end begins, so that a missed frame loses nothing. What is over is
   put away: the stored turn stands in the list below. People who listen hear what happens at most every few seconds,
   never token by token. */
(() => {
  "use strict";
  const KEPT = 40000;          // characters of one answer that the page holds
  const SAY_MS = 8000;         // between two words on how far an answer is
  const ENDS_MS = 2000;        // between two on what is over: several samples end together
  const TITLES = { text: "Answer", reasoning: "Reasoning", call: "Calls a tool" };
  // Control, bidirectional, zero-width and private characters are shown by their names.
  const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0f]/gu;
  const visible = (text) => text.replace(HIDDEN, (one) => {
    const place = one.codePointAt(0);
    if (place === 9 || place === 10) return one;
    if (place < 32) return String.fromCharCode(0x2400 + place);
    return place === 127 ? "\u2421" : `\u27e8U+${place.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
  const answers = new Map();   // by sample: {name, box, body, have, last, words, tool}
  const said = { at: -SAY_MS, timer: null, text: "", due: 0 };

  const say = (text, now = false) => {
    const node = document.querySelector("[data-answer-says]");
    if (!node) return;
    said.text = text;
    const due = said.at + (now ? ENDS_MS : SAY_MS);
    if (said.timer !== null && said.due <= due) return;   // the newest words are said when it is time
    clearTimeout(said.timer);
    said.due = due;
    said.timer = setTimeout(() => {
      said.timer = null;
      said.at = performance.now();
      node.textContent = said.text;
    }, Math.max(0, due - performance.now()));
  };

  const element = (tag, css, text) => {
    const made = document.createElement(tag);
    if (css) made.className = css;
    if (text) made.textContent = text;
    return made;
  };

  const nameOf = (data) => [data.round, data.attempt, data.sample, data.number].join(".");
  const titleOf = (data) => `Round ${data.round}, turn ${data.number}${data.sample ? `, sample ${data.sample + 1}` : ""}`;

  const begin = (host, data) => {
    answers.get(data.sample)?.box.remove();
    const box = element("article");
    const head = element("header");
    const count = element("span", "muted");
    head.append(element("b", "", titleOf(data)), count);
    const body = element("div", "body");
    body.tabIndex = 0;
    body.setAttribute("role", "group");
    body.setAttribute("aria-label", `${titleOf(data)}: the answer so far`);
    box.append(head, body);
    host.append(box);
    const answer = { name: nameOf(data), id: data.id, box, body, count, have: 0, last: null, held: 0, tool: "" };
    answers.set(data.sample, answer);
    say(`${titleOf(data)}: the model is asked.`);
    return answer;
  };

  /* A new piece of another kind opens a block of its own; reasoning is folded. */
  const block = (answer, kind) => {
    if (answer.last?.kind === kind) return answer.last.pre;
    const pre = element("pre", kind);
    if (kind === "reasoning") {
      const folded = element("details");
      folded.append(element("summary", "", TITLES.reasoning), pre);
      answer.body.append(folded);
    } else {
      if (kind === "call") answer.body.append(element("p", "call-name", TITLES.call));
      answer.body.append(pre);
    }
    answer.last = { kind, pre };
    return pre;
  };

  const append = (answer, kind, text) => {
    if (!text) return;
    const pre = block(answer, kind);
    pre.append(visible(text));
    pre.normalize();
    answer.held += text.length;
    while (answer.held > KEPT && answer.body.firstElementChild !== pre && answer.body.childElementCount > 1) {
      answer.held -= answer.body.firstElementChild.textContent.length;
      answer.body.firstElementChild.remove();
    }
    if (answer.held > KEPT) {
      const whole = pre.textContent;
      pre.textContent = `\u2026${whole.slice(whole.length - KEPT / 2)}`;
      answer.held = KEPT / 2;
    }
  };

  const show = (data) => {
    const host = document.querySelector("[data-answers]");
    if (!host) return;
    if (data.over) {
      const ended = answers.get(data.sample);
      if (ended?.name === nameOf(data)) { ended.box.remove(); answers.delete(data.sample); }
      return;
    }
    let answer = answers.get(data.sample);
    if (answer?.name !== nameOf(data) || answer.id !== data.id) answer = begin(host, data);
    const atEnd = answer.body.scrollHeight - answer.body.scrollTop - answer.body.clientHeight < 40;
    if (data.from > answer.have && answer.have > 0) append(answer, answer.last?.kind ?? "text", " \u2026 ");
    let place = data.from;
    for (const piece of data.pieces) {
      const points = [...String(piece.text)];   // the server counts characters, not UTF-16 units
      append(answer, piece.kind in TITLES ? piece.kind : "text", points.slice(Math.max(0, answer.have - place)).join(""));
      place += points.length;
    }
    if (place > answer.have) {
      answer.have = place;
      const kind = answer.last?.kind ?? "text";
      answer.count.textContent = `${answer.have.toLocaleString("en").replaceAll(",", "\u202f")} characters`;
      say(`${titleOf(data)}: ${kind === "reasoning" ? "reasoning" : kind === "call" ? "calling a tool" : "answering"}, `
        + `${answer.have} characters so far.`);
    }
    if (atEnd) answer.body.scrollTop = answer.body.scrollHeight;
  };

  document.addEventListener("stream:answer", ({ detail }) => show(detail));
  document.addEventListener("stream:event", ({ detail }) => {
    if (detail.kind === "agent.turn") {
      const answer = answers.get(detail.data.sample);
      if (answer?.name === nameOf(detail.data)) { answer.box.remove(); answers.delete(detail.data.sample); }
      say(detail.text, true);
    } else if (/^campaign\.(paused|plateau|finished|stopped|failed)$/.test(detail.kind)) {
      for (const answer of answers.values()) answer.box.remove();
      answers.clear();
    }
  });
})();
