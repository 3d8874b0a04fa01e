/* Regions that are wider than their place: data-more says which way there is more ("start", "end", both), so that the
   stylesheet can show it. Without it they scroll all the same. */
(() => {
  "use strict";
  const REGIONS = ".scroll, .nav, .tabs, .stepper, .boards";
  const mark = (region) => {
    const beyond = region.scrollWidth - region.clientWidth;
    const at = Math.abs(region.scrollLeft);
    const more = beyond < 2 ? "" : [at > 1 ? "start" : "", at < beyond - 1 ? "end" : ""].filter(Boolean).join(" ");
    if ((region.dataset.more ?? "") !== more) region.dataset.more = more;
  };
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) mark(target.matches(REGIONS) ? target : target.closest(REGIONS) ?? target);
  });
  const follow = () => {
    for (const region of document.querySelectorAll(REGIONS)) {
      sizes.observe(region);
      if (region.firstElementChild) sizes.observe(region.firstElementChild);
      mark(region);
    }
  };
  let due = 0;
  const later = () => { due ||= requestAnimationFrame(() => { due = 0; follow(); }); };
  document.addEventListener("scroll", (event) => { if (event.target.matches?.(REGIONS)) mark(event.target); }, true);
  document.addEventListener("DOMContentLoaded", () => {
    follow();
    document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    new MutationObserver(later).observe(document.body, { childList: true, subtree: true, attributeFilter: ["data-more"] });
  });
})();
