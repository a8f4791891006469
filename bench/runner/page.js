// Draws the charts of the benchmark page.
// The colour of a library: Starling's is the accent, the limit is grey. The settings of one library share a colour and differ by dashes.
const families = [...new Set(data.libraries.filter(key => key !== "limit").map(key => key.split("-")[0]))];
const shades = ["--accent", "--c1", "--c2", "--c4", "--c5", "--c3"];
const colorOf = key => key === "limit" ? css("--soft") : key.startsWith("starling") ? css("--accent") :
  css(shades[1 + families.filter(family => family !== "starling").indexOf(key.split("-")[0]) % 5]);
const dashes = key => key === "limit" ? [2, 4] : key.includes("-") ? [7, 4] : [];
const log = (title, ticks) => ({ type: "logarithmic", title: { display: true, text: title }, ticks: { maxTicksLimit: 12, callback: ticks } });
// The ticks of a line chart are its sizes, as many as have room.
const ticksAt = chart => axis => {
  const sizes = [...new Set(chart.series.flatMap(series => series.points.map(point => point[0])))].sort((a, b) => a - b);
  const apart = Math.log(sizes[sizes.length - 1] / sizes[0]) / 9, ticks = [];
  for (const value of sizes)
    if (!ticks.length || Math.log(value / ticks[ticks.length - 1].value) >= apart) ticks.push({ value });
  axis.ticks = ticks;
};
data.charts.forEach((chart, i) => new Chart($("lines" + i), { type: "line",
  data: { datasets: chart.series.map(series => ({ label: series.key, data: series.points.map(([x, y]) => ({ x, y })), borderColor: colorOf(series.key),
    backgroundColor: colorOf(series.key), borderDash: dashes(series.key), borderWidth: series.key === "starling" ? 3 : 1.6, pointRadius: 2.5 })) },
  options: { interaction: { mode: "nearest", intersect: false }, plugins: { legend: { labels: { usePointStyle: true, pointStyle: "line" } }, tooltip: { callbacks: {
    title: items => powers(items[0].parsed.x).replace(chart.x === "bytes" ? "" : " B", ""), label: item => item.dataset.label + ": " + item.parsed.y.toPrecision(4) + " " + chart.y } } },
    scales: { x: { ...log(chart.x, x => chart.x === "bytes" ? powers(x) : x), afterBuildTicks: ticksAt(chart) },
      y: log(chart.y, y => y < 1 ? y : short(y)) } } }));
// A label has several lines on a narrow screen, where one line would be cut.
const wrapped = label => innerWidth > 700 ? label : label.split(" ").reduce((lines, word) => {
  const last = lines[lines.length - 1];
  return last !== undefined && last.length + word.length < 24 ? [...lines.slice(0, -1), last + " " + word] : [...lines, word];
}, []);
data.ratios.forEach((group, i) => {
  const labels = group.rows.map(row => wrapped(row.label)), lines = Math.max(...labels.map(label => Array.isArray(label) ? label.length : 1));
  const color = row => css(row.value >= 1 ? "--c2" : "--c4") + (row.noisy ? "70" : "");
  $("ratios" + i).parentElement.style.height = 70 + (6 + 14 * lines) * group.rows.length + "px";
  new Chart($("ratios" + i), { type: "bar", data: { labels, datasets: [
    { data: group.rows.map(row => [Math.min(1, row.value), Math.max(1, row.value)]), backgroundColor: group.rows.map(color), maxBarThickness: 13 }] },
    options: { indexAxis: "y", plugins: { legend: { display: false }, tooltip: { callbacks: { label: item => {
      const row = group.rows[item.dataIndex];
      return row.value.toFixed(2) + " of the best peer's (" + row.peer + ")" + (row.noisy ? ", noisy" : ""); } } } },
      scales: { x: { ...log("times as good as the best peer", x => x), min: group.low, max: group.high }, y: { ticks: { autoSkip: false }, grid: { display: false } } } } });
});
