"""The results as one HTML page: plots, tables, failures and settings; without scripts and external resources."""
import html
import re

from . import plots, report
from .cases import GROUPS

STYLE = ("body{font:14px sans-serif;margin:2em;max-width:1500px}table{border-collapse:collapse;font-size:12px}"
         "td,th{padding:2px 8px;text-align:right;border-bottom:1px solid #ddd}"
         "td:first-child,th:first-child{text-align:left}"
         ".good{background:#dfd}.bad{background:#fdd}.warning{color:#a00;font-weight:bold}"
         "svg{margin:0 1.5em 1.5em 0;vertical-align:top}")

# Diagrams: (title, pattern of case names, operation name of the rows, label of x, label of y). The x value is the size of a row.
LINES = (("Latency over size", "latency", "", "bytes", "us"),
         ("Latency between parent and child", "latency-parent-child", "", "bytes", "us"),
         ("Bandwidth over size", "bandwidth", "", "bytes", "MB/s"),
         ("Start: the whole command over processes", r"hello-\d+", "", "processes", "ms"),
         ("Time in MPI_Init over processes", r"hello-\d+", "init", "processes", "ms"),
         ("Spawn over children", r"spawn-\d+", "spawn", "children", "ms"),
         ("Memory of an idle process over processes", r"memory-\d+", "pss-kB", "processes", "kB"),
         ("All pairs at once over processes", r"progress-\d+x", "pairs", "processes", "us"),
         ("Barrier between groups of 1+7 and 4+4", r"barrier-\d\+\d", "barrier", "", "us"))


def write(results, path):
    problem = report.verdict(results)
    machine = results["machine"]
    parts = ["<!doctype html><html lang=en><meta charset=utf-8><title>MPI libraries on one machine</title>",
             f"<style>{STYLE}</style><h1>MPI libraries on one machine</h1>",
             f"<p>{html.escape(results['date'])}; {html.escape(machine.get('processor', ''))}, {machine['cores']} "
             f"cores, Linux {html.escape(machine.get('kernel', ''))}. Medians of {results['rounds']} turns or more; "
             f"~: the turns differ by more than {results['spread']:.0%}. The libraries' columns are of the class "
             "of placement (half a round trip of a cache line between the cores) in which most is known; the ratios in "
             "all classes stand on the right.</p>",
             *(f"<p>{html.escape(line)}</p>" for line in report.account(results))]
    if problem:
        parts.append(f"<p class=warning>Not to be trusted: {html.escape(problem)}.</p>")
    parts += ["<h2>Over size and number</h2>"] + line_plots(results)
    parts += ["<h2>Speed over the best peer</h2>", ratio_plot(results)]
    parts += group_tables(results) + failures(results) + settings(results)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(part for part in parts if part) + "\n")


def line_plots(results):
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
        if any(len(points) > 1 for points in series.values()):
            made.append(plots.lines(title, series, x_label, y_label))
    return made


def ratio_plot(results):
    """Plots ratios to the best peer. Above 1 Starling is faster (or uses less), in every unit."""
    bars = []
    for name, case in results["cases"].items():
        for row in case["rows"]:
            value = report.ratio(case, row)
            if value:
                noisy = report.is_noisy(case, row)
                bars.append((report.label(name, row), value if case["larger_is_better"] else 1 / value, noisy))
    return plots.bars("to the right: Starling is better than the best peer; pale: noisy", bars)


def group_tables(results):
    parts = []
    present = {case["group"] for case in results["cases"].values()}
    for group in list(GROUPS) + sorted(present - set(GROUPS)):
        if group in present:
            parts += [f"<h2>{html.escape(GROUPS.get(group, group))}</h2>"] + table_of(results, group)
    return parts


def table_of(results, group):
    header, lines = report.table(results, wide=True, group=group)
    parts = ["<table><tr>" + "".join(f"<th>{html.escape(text)}" for text in header)]
    place = header.index("ratio")
    for line in lines:
        mark = {"+": "good", "-": "bad"}.get(line[place][-1:], "")
        parts.append("<tr>" + "".join(f"<td{f' class={mark}' if mark and i == place else ''}>{html.escape(text)}"
                                      for i, text in enumerate(line)))
    notes = sorted({f"{name}: {case['note']}" for name, case in results["cases"].items()
                    if case["group"] == group and case["note"]})
    return parts + ["</table>"] + [f"<p>{html.escape('; '.join(notes))}</p>" if notes else ""]


def failures(results):
    found = report.failures(results)
    return ["<h2>Failures</h2><ul>"] + [
        f"<li>{html.escape(f'{name}, {key}: {status}')}" for name, key, status in found] + ["</ul>"] if found else []


def settings(results):
    parts = ["<h2>Libraries</h2><ul>"]
    for key, library in results["libraries"].items():
        set_to = " ".join(f"{name}={value}" for name, value in library.get("settings", {}).items())
        words = filter(None, (key + ":", library["title"], library["version"], set_to))
        parts.append(f"<li>{html.escape(' '.join(words))}")
    return parts + ["</ul>"]
