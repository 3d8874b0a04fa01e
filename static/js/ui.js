/* Theme, tabs, keyboard overlay, jump box and small conveniences that every page shares.
   Loaded in <head> without defer so that the theme is set before the first paint. Without it every
   panel shows, forms post, and the theme follows the system. */
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const memory = {
    get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* private mode: the choice lasts for the page */ } },
  };
  const chosen = new URLSearchParams(location.search).get("theme") ?? memory.get("theme");
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const toggleTheme = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    memory.set("theme", root.dataset.theme);
    document.dispatchEvent(new CustomEvent("themechange"));
  };

  const select = (tab, focus = false) => {
    for (const other of tab.closest("[role=tablist]").querySelectorAll("[role=tab]")) {
      const on = other === tab;
      other.setAttribute("aria-selected", String(on));
      other.tabIndex = on ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !on;
    }
    document.dispatchEvent(new CustomEvent("tabshown", { detail: tab.getAttribute("aria-controls") }));
    if (focus) { tab.focus(); history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`); }
  };
  const startTabs = (list) => {
    const tabs = [...list.querySelectorAll("[role=tab]")];
    const follow = () => {                                     // the URL reproduces the screen: #correctness opens its panel
      const asked = tabs.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash);
      if (asked) select(asked);
      return asked;
    };
    if (!follow()) select(tabs.find((tab) => tab.getAttribute("aria-selected") === "true") ?? tabs[0]);
    addEventListener("hashchange", () => follow()?.scrollIntoView({ block: "nearest" }));
    list.addEventListener("click", (event) => { const tab = event.target.closest("[role=tab]"); if (tab) select(tab, true); });
    list.addEventListener("keydown", (event) => {
      const at = tabs.indexOf(document.activeElement);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      select(tabs[(to + tabs.length) % tabs.length], true);
    });
  };

  const typing = (node) => node.closest("input, textarea, select, [contenteditable]") !== null;
  let pending = "";                                            // "g" waits for its second key
  const go = (selector) => { const link = document.querySelector(selector); if (link) link.click(); };
  const onKey = (event, keys) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing(event.target)) { event.target.blur(); return; }
    if (typing(event.target)) return;
    if (pending === "g") {
      pending = "";
      if (event.key === "h") go("[data-go=home]");
      if (event.key === "r") go("[data-go=reviews]");
      return;
    }
    if (event.key === "g") pending = "g";
    else if (event.key === "?") { if (keys.open) keys.close(); else keys.showModal(); }
    else if (event.key === "t") toggleTheme();
    else if (event.key === "/") {
      const jump = document.querySelector("#jump");
      if (jump) { event.preventDefault(); jump.focus(); }
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    const keys = document.getElementById("keys");
    document.querySelectorAll("[role=tablist]").forEach(startTabs);
    document.querySelector("[data-theme-toggle]")?.addEventListener("click", toggleTheme);
    document.querySelector("[data-open=keys]")?.addEventListener("click", () => keys.showModal());
    if (keys) {
      keys.querySelector("[data-close]").addEventListener("click", () => keys.close());
      keys.addEventListener("click", (event) => { if (event.target === keys) keys.close(); });
      document.addEventListener("keydown", (event) => onKey(event, keys));
    }
    document.addEventListener("click", (event) => {
      const copy = event.target.closest("[data-copy]");
      if (copy) navigator.clipboard?.writeText(document.querySelector(copy.dataset.copy)?.textContent ?? copy.dataset.copy);
      event.target.closest("[data-dismiss]")?.closest(".banner, .toast")?.remove();
      if (event.target.closest("[aria-disabled=true]")) event.preventDefault();
      for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    });
    document.addEventListener("change", (event) => {           // filters that submit themselves
      if (event.target.closest("[data-autosubmit]")) event.target.form.requestSubmit();
    });
  });
})();
