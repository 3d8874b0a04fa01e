/* Draws the figures that the server built. A figure is JSON in the attribute data-figure of [data-chart] (a
   script element would be dropped from a refreshed region); colours are named by token ("--plot-candidate")
   and resolved here, so that both themes work. plotly.js is loaded when the first chart comes into view. The
   table beside each plot is the same data and stays readable without this file. */
(() => {
  "use strict";
  const NARROW = 480;
  const reduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const zoom = new WeakMap();                                  // what the reader zoomed to survives a refresh
  const drawn = new WeakMap();                                 // the figure and theme that each host shows
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

  /* On a phone there is no room beside the plot: labels of lines stand at their height in its left, where rounds have
     not come so far yet, instead of over the newest marks. */
  const inside = (layout) => {
    layout.margin = { ...layout.margin, r: 12 };
    layout.annotations = layout.annotations?.map((label) => {
      if (label.xref !== "paper" || label.x !== 1) return label;
      if (label.yref === "paper") return { ...label, x: 0 };                // what lies beyond the plot: its upper left
      return { ...label, x: 0, xanchor: "left", xshift: 4, yanchor: "bottom" };
    });
  };

  const draw = async (host) => {
    if (!host.dataset.figure) return;
    const Plotly = await load();
    const wanted = host.dataset.figure + (document.documentElement.dataset.theme ?? "system");
    if (drawn.get(host) === wanted || !host.offsetParent) return;
    drawn.set(host, wanted);
    const figure = resolve(JSON.parse(host.dataset.figure));
    const layout = { ...base(), ...figure.layout };
    for (const key of Object.keys(layout)) if (/^[xy]axis\d*$/.test(key)) layout[key] = axis(layout[key]);
    for (const [key, range] of Object.entries(zoom.get(host) ?? {})) layout[key] = { ...layout[key], range };
    if (host.clientWidth < NARROW) inside(layout);
    let canvas = host.querySelector(".chart-canvas");
    const fresh = !canvas;
    if (fresh) { canvas = document.createElement("div"); canvas.className = "chart-canvas"; host.append(canvas); }
    await Plotly.react(canvas, figure.data, layout, { displayModeBar: false, responsive: true, doubleClick: "reset" });
    if (fresh) follow(host, canvas);
  };

  const follow = (host, canvas) => {
    let whole = false;                                         // a double click asks for the whole figure again
    canvas.on("plotly_doubleclick", () => { whole = true; });
    canvas.on("plotly_relayout", (change) => {
      if (whole) { whole = false; zoom.delete(host); drawn.delete(host); draw(host); return; }
      const kept = { ...zoom.get(host) };
      for (const name of ["xaxis", "yaxis"]) {
        if (`${name}.range[0]` in change) kept[name] = [change[`${name}.range[0]`], change[`${name}.range[1]`]];
      }
      if (Object.keys(kept).length) zoom.set(host, kept);
    });
  };

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "200px" });
  const start = (root) => root.querySelectorAll("[data-chart]").forEach((host) => watcher.observe(host));

  document.addEventListener("DOMContentLoaded", () => start(document));
  document.addEventListener("htmx:afterSettle", () => start(document));
  document.addEventListener("themechange", () => document.querySelectorAll("[data-chart]").forEach(draw));
  document.addEventListener("tabshown", (event) => {
    document.getElementById(event.detail)?.querySelectorAll("[data-chart]").forEach(draw);
  });
})();
