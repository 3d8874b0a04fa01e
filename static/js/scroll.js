/* Regions that are wider than their place: data-more says which way there is more ("start", "end", both), so that the
   stylesheet can show it. Without it they scroll all the same. A stepper that is wider than its place follows the stage
   that runs or failed, once a stage, so that whoever scrolled away stays there. */
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
      if (region.matches(".stepper")) step(region);
      mark(region);
    }
  };
  const followed = new WeakMap();
  const step = (stepper) => {
    const at = stepper.querySelector("[aria-current=step]") ?? stepper.querySelector(".fail");
    if (!at || followed.get(stepper) === at.dataset.stage) return;
    followed.set(stepper, at.dataset.stage);
    const room = stepper.clientWidth - at.offsetWidth;
    stepper.scrollLeft += at.getBoundingClientRect().left - stepper.getBoundingClientRect().left - room / 2;
  };
  const unhide = (nav) => {  // the strip alone: the page may have been opened further down
    const at = nav.querySelector("[aria-current]")?.getBoundingClientRect(), place = nav.getBoundingClientRect();
    if (at) nav.scrollLeft += Math.min(0, at.left - place.left) + Math.max(0, at.right - place.right);
  };
  let due = 0;
  const later = () => { due ||= requestAnimationFrame(() => { due = 0; follow(); }); };
  document.addEventListener("scroll", (event) => { if (event.target.matches?.(REGIONS)) mark(event.target); }, true);
  document.addEventListener("DOMContentLoaded", () => {
    follow();
    document.querySelectorAll(".nav").forEach(unhide);
    new MutationObserver(later).observe(document.body, { childList: true, subtree: true, attributeFilter: ["data-more", "aria-current"] });
  });
})();
