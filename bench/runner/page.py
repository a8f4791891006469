"""The results as one HTML page: charts, tables, failures and settings, in the style of the profile page and with its helpers (tools/page).
It needs no other files. Without Chart.js (libjs-chart.js) it has the tables only."""
import html
import json
import re
from pathlib import Path

from . import report, words
from .cases import GROUPS

HERE = Path(__file__).resolve().parent
SHARED = HERE.parent.parent / "tools" / "page"
CHART = Path("/usr/share/javascript/chart.js/chart.min.js")
LEAST, MOST = 0.4, 2.5  # the axis of ratios has at least this range

# Charts: (title, pattern of case names, operation name of the rows, label of x, label of y). The x value is the size of a row.
LINES = (("Half a round trip by size", "latency", "", "bytes", "us"),
         ("Half a round trip between parent and child", "latency-parent-child", "", "bytes", "us"),
         ("Bandwidth by size", "bandwidth", "", "bytes", "MB/s"),
         ("Start and end of a job by processes", r"hello-\d+", "", "processes", "ms"),
         ("Time in MPI_Init by processes", r"hello-\d+", "init", "processes", "ms"),
         ("Spawn by children", r"spawn-\d+", "spawn", "children", "ms"),
         ("Memory of an idle process by processes", r"memory-\d+", "pss-kB", "processes", "kB"),
         ("All pairs at once by processes", r"progress-\d+x", "pairs", "processes", "us"))


def write(results, path, chart=CHART):
    script = chart.read_text(encoding="utf-8") if chart.exists() else ""
    data = {"libraries": list(results["libraries"]), "charts": line_charts(results), "ratios": ratios(results)}
    parts = {"STYLE": (SHARED / "style.css").read_text(encoding="utf-8"), "HEAD": head(results, script),
             "CHARTS": canvases(data) if script else "", "TABLES": "\n".join(tables(results)),
             "SCRIPTS": scripts(script, data) if script else ""}
    text = (HERE / "page.html").read_text(encoding="utf-8")
    text = re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark.group(1)], text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def scripts(chart, data):
    embedded = json.dumps(data).replace("<", "\\u003c")  # no name can end the script
    own = "\n".join(path.read_text(encoding="utf-8") for path in (SHARED / "helpers.js", HERE / "page.js"))
    return (f"<script>{chart}</script>\n<script type=\"application/json\" id=\"data\">{embedded}</script>\n"
            f"<script>\n{own}</script>")


def head(results, chart):
    machine, problem = results["machine"], report.verdict(results)
    peers = [key for key in results["libraries"] if report.is_peer(key)]
    values = [report.ratio(case, row) for case in results["cases"].values() for row in case["rows"]]
    better = sum(report.is_better(case, value) for case in results["cases"].values() for row in case["rows"]
                 if (value := report.ratio(case, row)) is not None)
    compared = sum(value is not None for value in values)
    noisy, _ = report.noisy_rows(results)
    tiles = [(f"{better} of {compared}", "rows at least as good as the best peer"), (len(peers), "other libraries"),
             (len(results["cases"]), "cases"), (noisy, "noisy rows"), (machine["cores"], "cores")]
    meta = filter(None, (results["date"], machine.get("processor", ""), machine.get("kernel") and "Linux " + machine["kernel"],
                         f"medians of {results['rounds']} turns or more"))
    parts = [f'<p class="meta">{escaped(" · ".join(meta))}</p>']
    if problem:
        parts.append(f'<section class="warning"><p>Not to be trusted: {escaped(problem)}.</p></section>')
    if not chart:
        parts.append('<section class="warning"><p>The charts need Chart.js: install libjs-chart.js, then run '
                     '<code>bench/compare --show</code>.</p></section>')
    parts.append('<div class="tiles">' + "".join(f'<div class="tile"><b>{escaped(str(value))}</b><span>{what}</span></div>'
                                                 for value, what in tiles) + "</div>")
    return "\n".join(parts)


def escaped(text):
    return html.escape(text)


def canvases(data):
    """Returns the elements in which page.js draws."""
    ratio_parts = [f'<section><h2>Against the best peer: {escaped(group["title"])}</h2><p>To the right of 1 Starling is better, in every '
                   f'unit; pale bars are noisy.</p><div class="chart"><canvas id="ratios{i}"></canvas></div></section>'
                   for i, group in enumerate(data["ratios"])]
    line_parts = [f'<section><h2>{escaped(chart["title"])}</h2><div class="chart"><canvas id="lines{i}"></canvas></div></section>'
                  for i, chart in enumerate(data["charts"])]
    return "\n".join(['<div class="two">', *line_parts, "</div>", *ratio_parts])


def line_charts(results):
    made = []
    for title, pattern, what, x_label, y_label in LINES:
        series = {}
        for name, case in results["cases"].items():
            if not re.fullmatch(pattern, name):
                continue
            for row in case["rows"]:
                if row["what"] == what:
                    for key in results["libraries"]:
                        if key in row["values"]:
                            series.setdefault(key, []).append((row["size"], row["values"][key]["median"]))
        # Points that a logarithmic axis can't show are left out.
        series = {key: sorted((x, y) for x, y in points if x > 0 and y > 0) for key, points in series.items()}
        if any(len(points) > 1 for points in series.values()):
            made.append({"title": title, "x": x_label, "y": y_label,
                         "series": [{"key": key, "points": points} for key, points in series.items() if points]})
    return made


def ratios(results):
    """Returns the ratios to the best peer by group. Above 1 Starling is faster (or uses less), in every unit."""
    groups = []
    for group in groups_of(results):
        rows = []
        for name, case in results["cases"].items():
            for row in case["rows"] if case["group"] == group else ():
                value = report.ratio(case, row)
                if value:
                    rows.append({"label": words.of_row(name, row), "value": value if case["larger_is_better"] else 1 / value,
                                 "peer": report.best_peer(case, row)[0], "noisy": report.is_noisy(case, row)})
        if rows:
            values = [row["value"] for row in rows]
            groups.append({"title": GROUPS.get(group, group), "rows": rows, "low": min([LEAST, *values]), "high": max([MOST, *values])})
    return groups


def groups_of(results):
    present = {case["group"] for case in results["cases"].values()}
    return [group for group in list(GROUPS) + sorted(present - set(GROUPS)) if group in present]


def tables(results):
    parts = []
    for group in groups_of(results):
        notes = sorted({f"{words.of_case(name)}: {case['note']}" for name, case in results["cases"].items()
                        if case["group"] == group and case["note"]})
        parts += [f"<section><h2>{escaped(GROUPS.get(group, group))}</h2>", table_of(results, group),
                  *(f"<p>{escaped(note)}</p>" for note in notes), "</section>"]
    return parts + failures(results) + settings(results) + account(results)


def table_of(results, group):
    """Returns a table with the values of all libraries, the ratio to the best peer and, with several classes of placement, one for each."""
    names = report.class_names(results)
    names = names if len(names) > 1 else []
    heads = ["", "unit", *results["libraries"], "against the best", "best peer", "× limit",
             *(f"against the best, {name or 'not placed'}" for name in names), "goal"]
    lines = ["<tr>" + "".join(cell("th", text, i) for i, text in enumerate(heads)) + "</tr>"]
    for name, case in results["cases"].items():
        if case["group"] == group:
            lines += [line_of(results, name, case, row, names) for row in case["rows"]] or [line_without_rows(results, name, case, heads)]
    return '<div class="wide"><table>' + "\n".join(lines) + "</table></div>"


def cell(tag, text, column, mark=""):
    classes = " ".join(filter(None, ("n" if column > 1 else "", mark)))
    return f"<{tag}{f' class={chr(34)}{classes}{chr(34)}' if classes else ''}>{escaped(text)}</{tag}>"


def line_of(results, name, case, row, names):
    away, key = report.distance(case, row), report.best_peer(case, row)[0]
    texts = [words.of_row(name, row), row["unit"],
             *(report.cell_text(row["values"].get(library), case["status"].get(library)) for library in results["libraries"]),
             report.ratio_text(case, row), key or "", f"{away:.1f}" if away is not None else "",
             *(report.ratio_text(case, report.in_class(row, one)) for one in names), report.goal_text(case, row)]
    first = 2 + len(results["libraries"])
    ratio_columns = {first, *range(first + 3, first + 3 + len(names))}
    return "<tr>" + "".join(cell("td", text, i, mark_of(text, i in ratio_columns)) for i, text in enumerate(texts)) + "</tr>"


def mark_of(text, is_ratio):
    if is_ratio:
        return {"+": "good", "-": "bad"}.get(text[-1:], "")
    return "bad" if text.endswith("missed") else ""


def line_without_rows(results, name, case, heads):
    texts = [words.of_case(name), "", *(report.short_status(case["status"].get(key)) for key in results["libraries"])]
    return "<tr>" + "".join(cell("td", text, i) for i, text in enumerate(texts + [""] * (len(heads) - len(texts)))) + "</tr>"


def failures(results):
    found = report.failures(results)
    return ["<section><h2>Failures</h2><ul>"] + [
        f"<li>{escaped(f'{words.of_case(name)} ({name}), {key}: {status}')}</li>" for name, key, status in found] + [
            "</ul></section>"] if found else []


def settings(results):
    parts = ["<section><h2>Libraries</h2><dl class=left>"]
    for key, library in results["libraries"].items():
        set_to = " ".join(f"{name}={value}" for name, value in library.get("settings", {}).items())
        title = library["title"] + ("" if library["version"].startswith(library["title"]) else " " + library["version"])
        parts.append(f"<dt>{escaped(key)}</dt><dd>{escaped(' '.join(filter(None, (title.strip(), set_to))))}</dd>")
    return parts + ["</dl></section>"]


def account(results):
    return ["<section><h2>How far to trust the values</h2>",
            f"<p>~: the turns of a value differ by more than {results['spread']:.0%}. Values are of the class of placement (half a round trip "
            "of a cache line between the cores) in which most is known.</p>",
            *(f"<p>{escaped(line)}</p>" for line in report.account(results)), "</section>"]
