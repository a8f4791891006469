"""The tables as Markdown, in the form of docs/measurements/messages-2026-11-22.md."""
from . import report
from .cases import GROUPS


def write(results, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text(results))


def text(results):
    parts = [f"{results['date'][:10]}; " + "; ".join(report.account(results)) + "."]
    problem = report.verdict(results)
    if problem:
        parts.append(f"**Not to be trusted**: {problem}.")
    present = {case["group"] for case in results["cases"].values()}
    for group in list(GROUPS) + sorted(present - set(GROUPS)):
        if group in present:
            parts.append(f"**{GROUPS.get(group, group).capitalize()}**")
            parts.append("\n".join(table(results, group)))
    found = [f"{name}, {key}: {status}" for name, key, status in report.failures(results)]
    if found:
        parts.append("Failures: " + "; ".join(found) + ".")
    return "\n\n".join(parts) + "\n"


def table(results, group):
    """Returns one row per value, with our own value, the best peer's and their ratio for each class."""
    cases = {name: case for name, case in results["cases"].items() if case["group"] == group}
    names = report.class_names(results | {"cases": cases})
    heads = [f"{name}: Starling, best peer, ratio" if name else "Starling, best peer, ratio" for name in names]
    lines = ["| | " + " | ".join(heads + ["limit", "goal"]) + " |", "|---" * (len(heads) + 3) + "|"]
    for name, case in cases.items():
        for row in case["rows"]:
            cells = [cell(case, report.in_class(row, one)) for one in names]
            limit = report.cell_text(row["values"].get(report.LIMIT), None)
            title = f"{report.label(name, row)}, {row['unit']}"
            lines.append("| " + " | ".join([title] + cells + [limit, report.goal_text(case, row)]) + " |")
    return lines


def cell(case, row):
    own = report.cell_text(row["values"].get(report.OWN), None)
    key, _ = report.best_peer(case, row)
    if not own or not key:
        return own
    value = report.ratio(case, row)
    ratio = f"**{value:.2f}**" if report.is_better(case, value) else f"{value:.2f}"
    return f"{own}, {report.cell_text(row['values'][key], None)} ({key}), {ratio}"
