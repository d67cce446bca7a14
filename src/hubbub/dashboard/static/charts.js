// Charts that answer to the pointer, drawn from the tables next to them. Without this file the drawings stay as sent.
"use strict";

const hubbubCharts = (() => {
  const HEIGHT = 250;
  const drawn = new Map(); // a figure's id -> its chart, and where it is

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (data) => (data ? Number(data.value) : null);
  const oldestFirst = (figure) => [...figure.querySelectorAll("tbody tr")].reverse();

  // Time, number, ends of the interval, and the number again where it is marked.
  function columns(figure) {
    const rows = oldestFirst(figure).map((row) => {
      const [time, middle, ends] = row.children;
      const [low, high] = ends ? ends.querySelectorAll("data") : [];
      const value = number(middle.querySelector("data"));
      return [Number(time.dataset.time), value, number(low), number(high), "marked" in row.dataset ? value : null];
    });
    return [0, 1, 2, 3, 4].map((column) => rows.map((row) => row[column]));
  }

  // What a row of the table says.
  function words(row) {
    const [time, middle, ends] = [...row.children].map((cell) => cell.textContent.trim());
    if (!middle) return `${time}: not known`;
    return `${time}: ${middle}` + (row.querySelectorAll("data").length === 3 ? `, between ${ends.replace(" to ", " and ")}` : "");
  }

  function axisWriter(figure) {
    const share = figure.dataset.chart === "share";
    const format = new Intl.NumberFormat("en", { maximumFractionDigits: Number(figure.dataset.decimals) });
    return (value) => format.format(share ? 100 * value : value).replace("-", "−") + (share ? "%" : "");
  }

  // Behind everything, the steps in which an alarm was raised: from each half the way to its neighbours. And a line where
  // a new version begins.
  function shade(chart, figure) {
    const times = chart.data[0];
    const { left, top, width, height } = chart.bbox;
    const x = (time) => Math.min(Math.max(chart.valToPos(time, "x", true), left), left + width);
    chart.ctx.save();
    chart.ctx.fillStyle = color("--shade");
    oldestFirst(figure).forEach((row, at) => {
      if ("begins" in row.dataset) {
        chart.ctx.fillStyle = color("--muted");
        chart.ctx.fillRect(x(times[at]), top, devicePixelRatio, height);
        chart.ctx.fillStyle = color("--shade");
      }
      if (!("alarm" in row.dataset)) return;
      const from = x((times[Math.max(at - 1, 0)] + times[at]) / 2);
      const to = x((times[at] + times[Math.min(at + 1, times.length - 1)]) / 2);
      chart.ctx.fillRect(from, top, to - from, height);
    });
    chart.ctx.restore();
  }

  function options(figure, readout) {
    const write = axisWriter(figure);
    const [ink, rule, accent, band] = ["--muted", "--rule", "--accent", "--band"].map(color);
    const fromZero = "zero" in figure.dataset;
    const interval = "interval" in figure.dataset;
    const axis = { stroke: ink, font: "12px system-ui, sans-serif", ticks: { show: false } };
    const unseen = { stroke: "transparent", points: { show: false }, show: interval };
    const day = "\n{D} {MMM}";
    return {
      height: HEIGHT,
      width: 600,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 8, fill: accent, stroke: accent } },
      scales: {
        y: {
          range: (_, low, high) => {
            const bottom = fromZero ? Math.min(0, low) : low;
            const top = fromZero ? Math.max(0, high) : high;
            const room = (top - bottom || 1) * 0.06;
            return [fromZero && bottom === 0 ? 0 : bottom - room, top + room];
          },
        },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          space: 70,
          gap: 8,
          values: [
            [31536000, "{YYYY}", null, null, null, null, null, null, 1],
            [2419200, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
            [86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
            [60, "{HH}:{mm}", day, null, day, null, null, null, 1],
            [1, "{HH}:{mm}:{ss}", day, null, day, null, null, null, 1],
            [0.001, "{ss}.{fff}", day, null, day, null, null, null, 1],
          ],
        },
        {
          ...axis,
          grid: { stroke: rule, width: 1 },
          values: (_, ticks) => ticks.map(write),
          size: (_, values) => 10 + 7 * Math.max(2, ...(values || []).map((value) => value.length)),
        },
      ],
      bands: interval ? [{ series: [3, 2], fill: band }] : [],
      series: [
        {},
        { stroke: accent, width: 2, points: { show: false }, fill: interval ? undefined : band },
        unseen,
        unseen,
        { stroke: "transparent", points: { show: true, size: 7, fill: accent, stroke: accent } },
      ],
      hooks: {
        drawAxes: [(chart) => shade(chart, figure)],
        setCursor: [
          (chart) => {
            const rows = oldestFirst(figure);
            const at = chart.cursor.idx;
            const row = rows[at === null || at === undefined ? rows.length - 1 : at];
            readout.textContent = row ? words(row) : "";
          },
        ],
      },
    };
  }

  function draw(figure) {
    const data = columns(figure);
    const plot = figure.querySelector(".plot");
    let known = drawn.get(figure.id);
    if (known && known.plot === plot && plot.contains(known.node)) {
      known.chart.setData(data);
    } else {
      const node = document.createElement("div");
      const readout = document.createElement("p");
      node.setAttribute("role", "img");
      readout.className = "readout";
      readout.setAttribute("aria-hidden", "true"); // the table says it
      const given = { ...options(figure, readout), width: plot.clientWidth };
      plot.replaceChildren(node, readout);
      known = { chart: new uPlot(given, data, node), plot, node };
      drawn.set(figure.id, known);
    }
    known.node.setAttribute("aria-label", plot.dataset.label);
    for (const hook of known.chart.hooks.setCursor) hook(known.chart);
  }

  function all() {
    if (typeof uPlot === "undefined") return;
    for (const figure of document.querySelectorAll("figure[data-chart]")) draw(figure);
    for (const [id, { chart, node }] of drawn) {
      if (!node.isConnected) {
        chart.destroy();
        drawn.delete(id);
      }
    }
  }

  function again() {
    for (const { chart } of drawn.values()) chart.destroy();
    drawn.clear();
    all();
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      for (const { chart, plot } of drawn.values()) chart.setSize({ width: plot.clientWidth, height: HEIGHT });
    }, 100);
  });
  return { all };
})();

hubbubCharts.all();
