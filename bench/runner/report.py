"""Results: stored as JSON, printed as tables on the terminal (and by page.py as a page)."""
import json
import os

from .cases import SETS

OWN = "starling"  # also the prefix of its other modes, starling-...
LIMIT = "limit"  # the machine's limit, not a library
TRUSTED_SHARE = 0.9  # share of the rows that must not be noisy, and of the commands that must not be disturbed by other programs


def save(results, path):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    results["verdict"] = verdict(results)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    os.replace(path + ".new", path)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def noisy_rows(results):
    """Returns (number of noisy rows, number of rows), both for rows that compare Starling with a peer. A row is noisy if our own or the
    best peer's value is."""
    found = [is_noisy(case, row) for case in results["cases"].values() for row in case["rows"]
             if ratio(case, row) is not None]
    return sum(found), len(found)


def is_noisy(case, row):
    return row["values"][OWN]["noisy"] or row["values"][best_peer(case, row)[0]]["noisy"]


def verdict(results):
    """Returns the reason why the numbers are not to be trusted, or an empty string."""
    noisy, rows = noisy_rows(results)
    reasons = []
    if noisy > (1 - TRUSTED_SHARE) * rows:
        reasons.append(f"{noisy} of {rows} rows differ by more than {results['spread']:.0%} between turns")
    if results["disturbed"] > (1 - TRUSTED_SHARE) * max(results["runs"], 1):
        reasons.append(f"the machine had other work during {results['disturbed']} of {results['runs']} runs")
    if results.get("added"):
        reasons.append(f"{', '.join(results['added'])} come from an earlier run, not from turns in this one")
    return "; ".join(reasons)


def add_columns(results, earlier):
    """Adds libraries of an earlier run that were not measured now."""
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


def is_peer(key):
    return key != LIMIT and key != OWN and not key.startswith(OWN + "-")


def in_class(row, name):
    """Returns a row with its values in the class `name` instead of the class with the most values."""
    return row | {"class": name, "values": row.get("classes", {}).get(name, {})}


def class_names(results):
    """Returns the classes in which rows have values, nearest cores first; the class of rows without a placement is last."""
    used = {name for case in results["cases"].values() for row in case["rows"] for name in row.get("classes", {})}
    known = [one["name"] for one in results.get("classes", []) if one["name"] in used]
    return known + ([""] if "" in used else [])


def best_peer(case, row):
    """Returns (key, median) of the best library except our own, over the default and the best settings of each."""
    peers = [(cell["median"], key) for key, cell in row["values"].items() if is_peer(key)]
    if not peers:
        return None, None
    median, key = max(peers) if case["larger_is_better"] else min(peers)
    return key, median


def ratio(case, row):
    """Returns the ratio of our own value to the best peer's; None if one of them is missing."""
    _, best = best_peer(case, row)
    own = row["values"].get(OWN)
    return own["median"] / best if own and best else None


def distance(case, row):
    """Returns the ratio of our own value to the machine's limit; None if one of them is missing."""
    own, limit = row["values"].get(OWN), row["values"].get(LIMIT)
    if not own or not limit or not own["median"] or not limit["median"]:
        return None
    return limit["median"] / own["median"] if case["larger_is_better"] else own["median"] / limit["median"]


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


def ratio_text(case, row):
    value = ratio(case, row)
    return f"{value:.2f} {'+' if is_better(case, value) else '-'}" if value is not None else ""


def goal_text(case, row):
    """Returns the goal, and whether it is reached in every known class."""
    goal = row.get("goal")
    if not goal:
        return ""
    ratios = [ratio(case, in_class(row, name)) for name in row["classes"]]
    known = [value for value in ratios if value is not None]
    if case["larger_is_better"]:
        return f">= {goal:g}" + ("" if all(value >= goal for value in known) else ", missed")
    return f"<= {goal:g}" + ("" if all(value <= goal for value in known) else ", missed")


def wide_texts(results, name, case, row):
    """Returns the cells of a row: all libraries in the class with the most values, and the ratios in each class."""
    texts = [label(name, row), row["unit"], row.get("class", "")]
    texts += [cell_text(row["values"].get(key), case["status"].get(key)) for key in results["libraries"]]
    away = distance(case, row)
    texts += [ratio_text(case, row), best_peer(case, row)[0] or "", f"{away:.1f}" if away is not None else ""]
    texts += [ratio_text(case, in_class(row, one)) for one in class_names(results)]
    return texts + [goal_text(case, row)]


def narrow_texts(results, name, case, row):
    """Returns the cells of a row: in each class our own value, the best peer's, the ratio, and the multiple of the limit."""
    texts = [label(name, row), row["unit"]]
    for one in class_names(results):
        there = in_class(row, one)
        key, _ = best_peer(case, there)
        away = distance(case, there)
        texts += [cell_text(there["values"].get(OWN), None), cell_text(there["values"].get(key), None), key or "",
                  ratio_text(case, there), f"{away:.1f}" if away is not None else ""]
    return texts + [goal_text(case, row)]


def cell_text(cell, status):
    if cell:
        return number_text(cell["median"]) + ("~" if cell["noisy"] else "")
    return short_status(status)


def short_status(status):
    if status is None:
        return ""
    return "-" if status == "ok" else status.split(":")[0].split(" ")[0].upper()


def header_of(results, wide):
    names = class_names(results)
    if wide:
        return ["", "unit", "class", *results["libraries"], "ratio", "best peer", "x limit",
                *(f"ratio {name}" for name in names), "goal"]
    return ["", "unit"] + [text for name in names
                           for text in (f"{name} {OWN}".strip(), "best", "peer", "ratio", "x limit")] + ["goal"]


def table(results, wide=True, group=None):
    header = header_of(results, wide)
    texts = wide_texts if wide else narrow_texts
    lines = []
    for name, case in results["cases"].items():
        if group and case["group"] != group:
            continue
        lines += [texts(results, name, case, row) for row in case["rows"]]
        if not case["rows"]:
            lines.append([name, "", *([""] + [short_status(case["status"].get(key)) for key in results["libraries"]]
                                      if wide else [])])
            lines[-1] += [""] * (len(header) - len(lines[-1]))
    return header, lines


def account(results):
    """Returns lines with the classes of the run, the number of dropped values and the share of noisy rows."""
    classes = ", ".join(f"{one['name']} ({one['looks']} looks)" for one in results.get("classes", []))
    noisy, rows = noisy_rows(results)
    lines = [f"{noisy} of {rows} rows are noisy (the middle turns differ by more than {results['spread']:.0%})"]
    if classes:
        lines.insert(0, f"half a round trip of a cache line between the cores: {classes}")
        lines.append(f"{results['kept']} values kept, {results['dropped']} dropped because the cores moved meanwhile")
    alone = {key: counts for key, counts in results.get("shared", {}).items() if counts[0]}
    if alone:
        lines.append("all processes on one core at the end of a value: " +
                     ", ".join(f"{key} {shared} of {looks}" for key, (shared, looks) in alone.items()))
    return lines


def print_tables(results, wide=False):
    header, lines = table(results, wide)
    widths = [max(len(line[i]) for line in [header] + lines) for i in range(len(header))]
    print(f"{results['date']}, {results['machine']['cores']} cores, medians of {results['rounds']} turns and more")
    for key, library in results["libraries"].items():
        print(f"  {key}: {library['title']} {library['version']}")
    print("ratio: Starling over the best peer; + as good or better, - worse; ~ noisy; "
          "x limit: multiple of the machine's limit")
    for line in [header] + lines:
        cells_text = [text.ljust(width) if i < 2 else text.rjust(width)
                      for i, (text, width) in enumerate(zip(line, widths))]
        print("  ".join(cells_text).rstrip())
    found = failures(results)
    if found:
        print("\nFailures:")
    for name, key, status in found:
        print(f"  {name}, {key}: {status}")
    print()
    for line in account(results):
        print(line)
    problem = verdict(results)
    print(f"Not to be trusted: {problem}." if problem else "The machine was calm and the values agree.")


def failures(results):
    """Returns (case, library, error)."""
    return [(name, key, status) for name, case in results["cases"].items()
            for key, status in case["status"].items() if status != "ok"]


def print_choices(libraries, cases):
    print("libraries:")
    for library in libraries:
        where = f"PyPI: {library.wheel}" if library.wheel else library.launcher[0]
        print(f"  {library.key:16} {library.title} ({where})")
    print("groups:", ", ".join(sorted({case.group for case in cases})))
    print("sets:", ", ".join(SETS))
    print("cases:", ", ".join(case.name for case in cases))
