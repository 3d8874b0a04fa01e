"use strict";
(() => {
  const root = document.documentElement, probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const colour = (token) => { probe.style.color = `var(${token})`; return getComputedStyle(probe).color; };
  const resolve = (value) => {
    if (typeof value === "string") return value.startsWith("--") ? colour(value) : value;
    if (Array.isArray(value)) return value.map(resolve);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolve(v)]));
    return value;
  };
  const draw = (host) => {
    const plot = resolve(JSON.parse(host.dataset.plot)), ink = colour("--ink"), grid = colour("--grid");
    const axis = (given) => ({ gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true, ...given });
    const layout = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 12,
      family: getComputedStyle(document.body).fontFamily }, ...plot.layout, height: plot.height ?? 340 };
    layout.xaxis = axis(layout.xaxis); layout.yaxis = axis(layout.yaxis);
    Plotly.react(host, plot.data, layout, { displayModeBar: false, responsive: true });
    host.dataset.drawn = "yes";
  };
  const hosts = [...document.querySelectorAll("[data-plot]")];
  const again = () => hosts.filter((host) => host.dataset.drawn).forEach(draw);
  const seen = new IntersectionObserver((entries) => entries.filter((one) => one.isIntersecting).forEach((one) => {
    seen.unobserve(one.target);
    draw(one.target);
  }), { rootMargin: "400px" });
  if (window.Plotly) hosts.forEach((host) => seen.observe(host));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  const button = document.querySelector("button.theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    again();
  });
})();
