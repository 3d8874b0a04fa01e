/* How refreshed regions are morphed: what a reader typed, opened or zoomed stays as it is. And the symbols of
   steps and events that the stream changes between two refreshes. */
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
