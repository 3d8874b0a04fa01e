/* Draws the figures that the server built. A figure is JSON in <script type="application/json"> inside
   [data-chart]; colours are named by token ("--plot-candidate") and resolved here, so that both themes
   work. plotly.js is loaded when the first chart comes into view. The table beside each plot is the
   same data and stays readable without this file. */
(() => {
  "use strict";
  const reduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const zoom = new Map();                                      // what the reader zoomed to survives a refresh
  let loading = null;

  /* The bundle would add a style element for its maps, which no page uses and the policy refuses; it leaves
     that out where an element of this id exists. */
  const MAP_STYLES = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";

  const load = () => loading ??= new Promise((resolve, reject) => {
    if (window.Plotly) { resolve(window.Plotly); return; }
    const guard = document.createElement("template");
    guard.id = MAP_STYLES;
    document.head.append(guard);
    const script = document.createElement("script");
    script.src = document.querySelector("[data-plotly-src]").dataset.plotlySrc;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("plotly did not load"));
    document.head.append(script);
  });

  /* light-dark() tokens resolve to a colour only on an element, so a probe reads them. */
  const probe = document.createElement("span");
  probe.hidden = true;
  const colour = (token) => {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(${token})`;
    return getComputedStyle(probe).color;
  };
  const resolve = (value) => {
    if (typeof value === "string") return value.startsWith("--") ? colour(value) : value;
    if (Array.isArray(value)) return value.map(resolve);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolve(v)]));
    return value;
  };

  const base = () => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 11, color: colour("--text-2") },
    hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--line-strong"), font: { color: colour("--text") } },
    transition: reduced ? { duration: 0 } : undefined,
  });
  const axis = (given) => ({
    gridcolor: colour("--plot-grid"), linecolor: colour("--line-strong"), zerolinecolor: colour("--plot-grid"),
    tickcolor: colour("--line-strong"), automargin: true, ...given,
  });

  const draw = async (host) => {
    const source = host.querySelector("script[type='application/json']");
    if (!source) return;
    const Plotly = await load();
    const figure = resolve(JSON.parse(source.textContent));
    const layout = { ...base(), ...figure.layout };
    for (const key of Object.keys(layout)) if (/^[xy]axis\d*$/.test(key)) layout[key] = axis(layout[key]);
    const kept = zoom.get(host.id);
    if (kept) for (const [key, range] of Object.entries(kept)) layout[key] = { ...layout[key], range, autorange: false };
    let canvas = host.querySelector(".chart-canvas");
    if (!canvas) { canvas = document.createElement("div"); canvas.className = "chart-canvas"; host.append(canvas); }
    await Plotly.react(canvas, figure.data, layout, { displayModeBar: false, responsive: true, doubleClick: "reset" });
    host.dataset.drawn = source.textContent.length + ":" + (document.documentElement.dataset.theme ?? "system");
    if (canvas.dataset.watched) return;
    canvas.dataset.watched = "yes";
    canvas.on("plotly_relayout", (change) => {
      const next = {};
      for (const name of ["xaxis", "yaxis"]) {
        if (`${name}.range[0]` in change) next[name] = [change[`${name}.range[0]`], change[`${name}.range[1]`]];
      }
      if (Object.keys(next).length) zoom.set(host.id, { ...zoom.get(host.id), ...next });
      else if (Object.keys(change).some((key) => key.endsWith("autorange"))) zoom.delete(host.id);
    });
  };

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "200px" });
  const start = (root) => root.querySelectorAll("[data-chart]").forEach((host) => watcher.observe(host));

  document.addEventListener("DOMContentLoaded", () => start(document));
  document.addEventListener("htmx:afterSettle", (event) => start(event.target.closest("section, main") ?? document));
  document.addEventListener("themechange", () => document.querySelectorAll("[data-chart]").forEach(draw));
  document.addEventListener("tabshown", (event) => {
    document.getElementById(event.detail)?.querySelectorAll("[data-chart]").forEach(draw);
  });
})();
