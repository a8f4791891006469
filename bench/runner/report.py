"""Results: stored as JSON, shown as tables on the terminal (and by page.py as a page)."""
import json
import os

OWN = "starling"  # and its other modes, starling-...
LIMIT = "limit"  # no library: what the machine allows
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


def is_peer(key):
    return key != LIMIT and key != OWN and not key.startswith(OWN + "-")


def best_peer(case, row):
    """(key, median) of the best library but our own, over the defaults and the best settings of each."""
    peers = [(cell["median"], key) for key, cell in row["values"].items() if is_peer(key)]
    if not peers:
        return None, None
    median, key = max(peers) if case["larger_is_better"] else min(peers)
    return key, median


def ratio(case, row):
    """Our own value over the best peer's (None if one of them is missing)."""
    _, best = best_peer(case, row)
    own = row["values"].get(OWN)
    return own["median"] / best if own and best else None


def distance(case, row):
    """How many times the machine's limit our own value is away from it (None if one of them is missing)."""
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


def row_texts(results, name, case, row, wide=True):
    """The cells of a row of the table, as text; not wide: of the peers only the best."""
    texts = [label(name, row), row["unit"]]
    for key in columns(results, wide):
        texts.append(cell_text(row["values"].get(key), case["status"].get(key)))
    key, _ = best_peer(case, row)
    if not wide:
        texts.append(cell_text(row["values"].get(key), None))
    value = ratio(case, row)
    texts.append(f"{value:.2f} {'+' if is_better(case, value) else '-'}" if value is not None else "")
    texts.append(key or "")
    away = distance(case, row)
    texts.append(f"{away:.1f}" if away is not None else "")
    return texts


def cell_text(cell, status):
    if cell:
        return number_text(cell["median"]) + ("~" if cell["noisy"] else "")
    return short_status(status)


def columns(results, wide):
    return [key for key in results["libraries"] if wide or not is_peer(key)]


def short_status(status):
    if status is None:
        return ""
    return "-" if status == "ok" else status.split(":")[0].split(" ")[0].upper()


def table(results, wide=True, group=None):
    keys = columns(results, wide)
    header = ["", "unit", *keys, *([] if wide else ["best"]), "ratio", "best peer", "x limit"]
    lines = []
    for name, case in results["cases"].items():
        if group and case["group"] != group:
            continue
        for row in case["rows"]:
            lines.append(row_texts(results, name, case, row, wide))
        if not case["rows"]:
            lines.append([name, "", *(short_status(case["status"].get(key)) for key in keys)])
            lines[-1] += [""] * (len(header) - len(lines[-1]))
    return header, lines


def print_tables(results, wide=False):
    header, lines = table(results, wide)
    widths = [max(len(line[i]) for line in [header] + lines) for i in range(len(header))]
    print(f"{results['date']}, {results['machine']['cores']} cores, medians of {results['rounds']} turns")
    for key, library in results["libraries"].items():
        print(f"  {key}: {library['title']} {library['version']}")
    print("ratio: Starling over the best peer; + as good or better, - worse; ~ noisy; "
          "x limit: times what the machine allows")
    for line in [header] + lines:
        cells_text = [text.ljust(width) if i < 2 else text.rjust(width)
                      for i, (text, width) in enumerate(zip(line, widths))]
        print("  ".join(cells_text).rstrip())
    found = failures(results)
    if found:
        print("\nWhat did not run:")
    for name, key, status in found:
        print(f"  {name}, {key}: {status}")
    problem = verdict(results)
    print(f"\nNot to be trusted: {problem}." if problem else "\nThe machine was calm and the values agree.")


def failures(results):
    """(case, library, what happened)"""
    return [(name, key, status) for name, case in results["cases"].items()
            for key, status in case["status"].items() if status != "ok"]


def print_choices(libraries, cases):
    print("libraries:")
    for library in libraries:
        where = f"PyPI: {library.wheel}" if library.wheel else library.launcher[0]
        print(f"  {library.key:16} {library.title} ({where})")
    print("groups:", ", ".join(sorted({case.group for case in cases})), "and targets")
    print("cases:", ", ".join(case.name for case in cases))
