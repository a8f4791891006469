"""Results: stored as JSON, shown as tables on the terminal and as an HTML page."""
import base64
import html
import io
import json
import os

OWN = "starling"
TRUSTED_SHARE = 0.8  # of the rows must be calm, and of the runs undisturbed


def save(results, path):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    results["verdict"] = verdict(results)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    os.replace(path + ".new", path)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def cells(results):
    for case in results["cases"].values():
        for row in case["rows"]:
            yield from row["values"].values()


def verdict(results):
    """Why the numbers are not to be trusted, or an empty string."""
    all_cells = list(cells(results))
    noisy = sum(cell["noisy"] for cell in all_cells)
    reasons = []
    if all_cells and noisy > (1 - TRUSTED_SHARE) * len(all_cells):
        reasons.append(f"{noisy} of {len(all_cells)} values differ by more than {results['spread']:.0%} between turns")
    if results["disturbed"] > (1 - TRUSTED_SHARE) * max(results["runs"], 1):
        reasons.append(f"the machine was busy with other work before {results['disturbed']} of {results['runs']} runs")
    if results.get("added"):
        reasons.append(f"{', '.join(results['added'])} come from an earlier run, not from turns in this one")
    return "; ".join(reasons)


def add_columns(results, earlier):
    """Takes over libraries that were not measured now."""
    added = [key for key in earlier["libraries"] if key not in results["libraries"]]
    results["added"] = added
    for key in added:
        results["libraries"][key] = earlier["libraries"][key]
    for name, case in results["cases"].items():
        old = earlier["cases"].get(name)
        if not old:
            continue
        rows = {(row["what"], row["size"]): row for row in old["rows"]}
        for key in added:
            if key in old["status"]:
                case["status"][key] = old["status"][key]
        for row in case["rows"]:
            values = rows.get((row["what"], row["size"]), {"values": {}})["values"]
            row["values"].update({key: values[key] for key in added if key in values})


def best_peer(case, row):
    """(key, median) of the best library but our own."""
    peers = [(cell["median"], key) for key, cell in row["values"].items() if key != OWN]
    if not peers:
        return None, None
    median, key = max(peers) if case["larger_is_better"] else min(peers)
    return key, median


def ratio(case, row):
    """Our own value over the best peer's (None if one of them is missing)."""
    _, best = best_peer(case, row)
    own = row["values"].get(OWN)
    return own["median"] / best if own and best else None


def is_better(case, value):
    return value >= 1 if case["larger_is_better"] else value <= 1


def size_text(size):
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def number_text(value):
    if value == 0 or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def label(name, row):
    what = row["what"] if row["what"] and row["what"] not in name else ""
    return " ".join(filter(None, (name, what, size_text(row["size"]) if row["size"] else "")))


def row_texts(results, name, case, row):
    """The cells of a row of the table, as text."""
    texts = [label(name, row), row["unit"]]
    for key in results["libraries"]:
        cell = row["values"].get(key)
        if cell:
            texts.append(number_text(cell["median"]) + ("~" if cell["noisy"] else ""))
        else:
            texts.append(short_status(case["status"].get(key)))
    key, _ = best_peer(case, row)
    value = ratio(case, row)
    texts.append(f"{value:.2f} {'+' if is_better(case, value) else '-'}" if value is not None else "")
    texts.append(key or "")
    return texts


def short_status(status):
    if status is None:
        return ""
    return "-" if status == "ok" else status.split(":")[0].split(" ")[0].upper()


def table(results):
    header = ["", "unit", *results["libraries"], "ratio", "best peer"]
    lines = []
    for name, case in results["cases"].items():
        for row in case["rows"]:
            lines.append(row_texts(results, name, case, row))
        if not case["rows"]:
            statuses = [short_status(case["status"].get(key)) for key in results["libraries"]]
            lines.append([name, "", *statuses, "", ""])
    return header, lines


def print_tables(results):
    header, lines = table(results)
    widths = [max(len(line[i]) for line in [header] + lines) for i in range(len(header))]
    print(f"{results['date']}, {results['machine']['cores']} cores, medians of {results['rounds']} turns")
    for key, library in results["libraries"].items():
        print(f"  {key}: {library['title']} {library['version']}")
    print("ratio: Starling over the best peer; + as good or better, - worse; ~ noisy")
    for line in [header] + lines:
        cells_text = [text.ljust(width) if i < 2 else text.rjust(width)
                      for i, (text, width) in enumerate(zip(line, widths))]
        print("  ".join(cells_text).rstrip())
    print_failures(results)
    problem = verdict(results)
    print(f"\nNot to be trusted: {problem}." if problem else "\nThe machine was calm and the values agree.")


def print_failures(results):
    failures = [(name, key, status) for name, case in results["cases"].items()
                for key, status in case["status"].items() if status != "ok"]
    if failures:
        print("\nWhat did not run:")
    for name, key, status in failures:
        print(f"  {name}, {key}: {status}")


def print_choices(libraries, cases):
    print("libraries:")
    for library in libraries:
        where = f"PyPI: {library.wheel}" if library.wheel else library.launcher[0]
        print(f"  {library.key:16} {library.title} ({where})")
    print("groups:", ", ".join(sorted({case.group for case in cases})), "and targets")
    print("cases:", ", ".join(case.name for case in cases))


def write_html(results, path):
    header, lines = table(results)
    parts = ["<!doctype html><meta charset=utf-8><title>Comparison</title>",
             "<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}"
             "td,th{padding:2px 10px;text-align:right;border-bottom:1px solid #ddd}td:first-child{text-align:left}"
             ".good{background:#dfd}.bad{background:#fdd}</style>",
             f"<h1>MPI libraries on one machine</h1><p>{html.escape(results['date'])}, "
             f"{results['machine']['cores']} cores. Ratio: Starling over the best peer. ~ noisy.</p>"]
    problem = verdict(results)
    if problem:
        parts.append(f"<p><b>Not to be trusted: {html.escape(problem)}.</b></p>")
    parts.append(plot(results))
    parts.append("<table><tr>" + "".join(f"<th>{html.escape(text)}" for text in header))
    for line in lines:
        mark = {"+": "good", "-": "bad"}.get(line[-2][-1:], "")
        parts.append("<tr>" + "".join(
            f"<td{' class=' + mark if mark and i == len(line) - 2 else ''}>{html.escape(text)}"
            for i, text in enumerate(line)))
    parts.append("</table>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts))
    print(f"written to {path}")


def plot(results):
    """The ratios of all rows as one picture, if matplotlib is there."""
    rows = [(label(name, row), ratio(case, row), case["larger_is_better"])
            for name, case in results["cases"].items() for row in case["rows"] if ratio(case, row)]
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return "<p>(No plot: matplotlib is not installed.)</p>"
    if not rows:
        return ""
    # Speed over the best peer: above 1 is better whatever the unit.
    speeds = [value if larger else 1 / value for _, value, larger in rows]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.2 * len(rows)))
    axes.barh(range(len(rows)), speeds, color=["#4a4" if speed >= 1 else "#c44" for speed in speeds])
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows], fontsize=7)
    axes.set_xscale("log")
    axes.axvline(1, color="black")
    axes.invert_yaxis()
    axes.set_xlabel("speed over the best peer (right: better)")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    return f"<img src='data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}'>"
