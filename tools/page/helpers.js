// Helpers of the pages that starling and bench/compare write: texts of numbers, elements, and charts in the page's colours.
/* Chart.js within this page: Copyright (c) 2014-2022 Chart.js Contributors, under the MIT License:
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files
(the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge,
publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do
so, subject to the following conditions: The above copyright notice and this permission notice shall be included in all copies or
substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING
BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE. */
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const short = (n, units = ["", " k", " M", " G", " T"]) => {
  let unit = 0;
  while (n >= 999.5 && unit < 4) { n /= 1000; ++unit; }
  return (unit === 0 ? String(Math.round(n * 10) / 10) : n.toPrecision(3)) + units[unit];
};
const bytes = n => short(n, [" B", " KB", " MB", " GB", " TB"]);
const powers = n => { let unit = 0; while (n >= 1024 && unit < 4) { n /= 1024; ++unit; } return Math.round(n) + [" B", " KB", " MB", " GB", " TB"][unit]; };
const time = s => s >= 1 || s === 0 ? s.toPrecision(3) + " s" : s >= 1e-3 ? (s * 1e3).toPrecision(3) + " ms" : (s * 1e6).toPrecision(3) + " µs";
const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(part / whole < 0.1 ? 1 : 0) + " %" : "–";
const sum = list => list.reduce((a, b) => a + b, 0);
const plural = (n, what) => n + " " + what + (n === 1 ? "" : what.endsWith("s") ? "es" : "s");

function text(parent, tag, content, className) {
  const element = document.createElement(tag);
  element.textContent = content;
  if (className) element.className = className;
  parent.append(element);
  return element;
}

// Adds rows to a table. Columns from `numbers` on are numbers; a cell may be [text, class].
function table(element, head, rows, numbers) {
  for (const [cells, tag] of [[head, "th"], ...rows.map(row => [row, "td"])]) {
    const line = document.createElement("tr");
    cells.forEach((cell, i) => text(line, tag, Array.isArray(cell) ? cell[0] : cell,
      [i >= numbers ? "n" : "", Array.isArray(cell) ? cell[1] : ""].filter(Boolean).join(" ")));
    element.append(line);
  }
}

// Adds tiles: pairs of a value and what it is.
function tiles(parent, list) {
  for (const [value, what] of list) {
    const tile = text(parent, "div", "", "tile");
    text(tile, "b", value);
    text(tile, "span", what);
  }
}

// Adds the key of colours: pairs of a name and a colour.
function keys(parent, list) {
  for (const [name, color] of list) {
    const key = text(parent, "span", "");
    text(key, "i", "").style.background = color;
    key.append(name);
  }
}

Chart.defaults.font.family = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
Chart.defaults.color = css("--soft");
Chart.defaults.borderColor = css("--line");
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
// The charts have the colours of the theme in which they were drawn.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
const axis = (title, more = {}) => ({ title: { display: true, text: title }, beginAtZero: true, ...more });
const line = (label, values, color, more = {}) => ({ label, data: values, borderColor: css(color), backgroundColor: css(color), borderWidth: 2,
  pointRadius: 0, pointHitRadius: 8, ...more });
const bar = (label, values, color, more = {}) => ({ label, data: values, backgroundColor: css(color), maxBarThickness: 34, ...more });
// Draws horizontal bars, stacked by data set.
const stacked = (id, labels, datasets, unit) => new Chart($(id), { type: "bar", data: { labels, datasets },
  options: { indexAxis: "y", scales: { x: axis(unit, { stacked: true }), y: { stacked: true, grid: { display: false } } } } });
