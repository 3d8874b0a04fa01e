/* How refreshed regions are morphed: what a reader typed, opened or zoomed stays as it is. And the symbols of
   steps and events that the stream changes between two refreshes, and what a preview finds wrong, beside its field. */
(() => {
  "use strict";
  const symbol = (node, name) => node?.querySelector("svg use")?.setAttribute("href", `#i-${name}`);
  const STEPS = [["fail", "cross"], ["on", "run"], ["done", "check"], ["opt", "dash"]];
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      if (!target.matches("[data-stage]")) continue;
      symbol(target, STEPS.find(([name]) => target.classList.contains(name))?.[1] ?? "dot");
    }
  }).observe(document.documentElement, { subtree: true, attributes: true, attributeFilter: ["class"] });

  document.addEventListener("stream:event", ({ detail }) => {
    const icons = JSON.parse(document.getElementById("event-icons")?.textContent ?? "{}");
    const [name, tone] = icons[detail.kind] ?? ["dot", ""];
    const item = document.querySelector(`[data-feed] [data-seq="${detail.seq}"]`);
    symbol(item, name);
    if (tone) item?.querySelector("svg")?.classList.add(tone);
  });

  const unmark = (note) => {
    const field = document.getElementById(note.id.replace(/-error$/, ""));
    field?.removeAttribute("aria-invalid");
    if (field && document.getElementById(`${field.id}-hint`)) field.setAttribute("aria-describedby", `${field.id}-hint`);
    note.remove();
  };
  document.addEventListener("htmx:afterSettle", () => {
    const preview = document.getElementById("preview");
    if (!preview) return;
    const wrong = new Map([...preview.querySelectorAll("[data-for]")].map((row) => [row.dataset.for, row]));
    for (const note of document.querySelectorAll(".err[id$='-error']")) if (!wrong.has(note.id.slice(0, -6))) unmark(note);
    for (const [name, row] of wrong) {
      const field = document.getElementById(name);
      if (!field?.closest(".field")) continue;
      let note = document.getElementById(`${name}-error`);
      if (!note) {
        note = document.createElement("p");
        note.className = "err";
        note.id = `${name}-error`;
        note.append(row.querySelector("svg").cloneNode(true), document.createElement("span"));
        (field.closest(".unit, .row") ?? field).after(note);
      }
      note.querySelector("span").textContent = row.querySelector("[data-text]").textContent;
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", note.id);
    }
  });

  document.addEventListener("DOMContentLoaded", () => {
    if (!window.Idiomorph) return;
    const calls = Idiomorph.defaults.callbacks;
    Idiomorph.defaults.ignoreActiveValue = true;
    calls.beforeAttributeUpdated = (name, node) => !(name === "open" && node.tagName === "DETAILS");
    calls.beforeNodeMorphed = (old, fresh) => {
      if (old.nodeType !== 1) return true;
      if (old.matches("[data-keep]") && fresh.matches?.("[data-keep]")) return false;   // a script fills it
      if (old.matches("[data-chart]") && fresh.matches?.("[data-chart]")) {   // what is drawn inside is not the server's
        for (const name of ["data-figure", "aria-label"]) old.setAttribute(name, fresh.getAttribute(name) ?? "");
        return false;
      }
      return !(old.matches("textarea, input[type=text]") && old.value !== old.defaultValue);
    };
  });
})();
