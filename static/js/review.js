/* Keyboard and conveniences of the review page. Nothing here decides: no single key approves, rejects or
   promotes, and every action is a form that works without this file. */
(() => {
  "use strict";
  const typing = (node) => node.closest("input, textarea, select, [contenteditable]") !== null;
  const step = (selector, forward) => {
    const stops = [...document.querySelectorAll(selector)].filter((node) => node.offsetParent !== null);
    const here = window.innerHeight * 0.35;
    const next = forward ? stops.find((node) => node.getBoundingClientRect().top > here + 2)
      : stops.reverse().find((node) => node.getBoundingClientRect().top < here - 2);
    if (!next) return;
    window.scrollBy({ top: next.getBoundingClientRect().top - here });
    document.querySelector("tr.at")?.classList.remove("at");
    next.closest("tr")?.classList.add("at");
  };
  const unfold = (button) => {
    const name = button.dataset.unfold;
    document.querySelectorAll(`tr[data-fold="${name}"]`).forEach((row) => { row.hidden = false; });
    button.closest("tr").remove();
  };
  const commentOn = (line, side) => {
    const form = document.querySelector("#line-comment");
    if (!form) return;
    form.querySelector("[name=line]").value = line;
    form.querySelector("[name=side]").value = side;
    form.querySelector("[data-line-label]").textContent = `line ${line}, ${side} side`;
    form.hidden = false;
    form.querySelector("textarea").focus();
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-unfold]");
    if (button) unfold(button);
    if (event.target.closest("[data-unfold-all]")) document.querySelectorAll("[data-unfold]").forEach(unfold);
    const number = event.target.closest("a[data-line]");
    if (number) { event.preventDefault(); commentOn(number.dataset.line, number.dataset.side); }
    if (event.target.closest("[data-close-comment]")) document.querySelector("#line-comment").hidden = true;
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "j") step(".diff tr[data-change]", true);
    if (event.key === "k") step(".diff tr[data-change]", false);
    if (event.key === "]") step(".thread", true);
    if (event.key === "[") step(".thread", false);
    if (event.key === "e") document.querySelectorAll("[data-unfold]").forEach(unfold);
    if (event.key === "c") {
      const row = document.querySelector("tr.at") ?? document.querySelector(".diff tr[data-change]");
      const link = row?.querySelector("a[data-line]");
      if (link) { event.preventDefault(); commentOn(link.dataset.line, link.dataset.side); }
    }
    if (event.key === "a") {
      const box = document.querySelector(".decision textarea");
      if (box) { event.preventDefault(); box.focus(); }
    }
  });
  document.addEventListener("DOMContentLoaded", () => {         // folded lines are in the page for readers without scripts
    document.querySelectorAll("tr[data-fold]").forEach((row) => { row.hidden = true; });
    document.querySelectorAll("tr.fold").forEach((row) => { row.hidden = false; });
    const form = document.querySelector("#line-comment");
    if (form && !form.dataset.keep) form.hidden = true;
  });
})();
