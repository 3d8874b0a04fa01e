/* How refreshed regions are morphed: what a reader typed, opened or zoomed stays as it is. */
(() => {
  "use strict";
  document.addEventListener("DOMContentLoaded", () => {
    if (!window.Idiomorph) return;
    const calls = Idiomorph.defaults.callbacks;
    Idiomorph.defaults.ignoreActiveValue = true;
    calls.beforeAttributeUpdated = (name, node) => !(name === "open" && node.tagName === "DETAILS");
    calls.beforeNodeRemoved = (node) => !(node.nodeType === 1 && node.matches(".chart-canvas"));
    calls.beforeNodeMorphed = (old) => !(old.nodeType === 1 && (old.matches(".chart-canvas")
      || (old.matches("textarea, input[type=text]") && old.value !== old.defaultValue)));
  });
})();
