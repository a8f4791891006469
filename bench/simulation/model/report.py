"""Tables for docs/scaling.md and its plots."""
import re


def ms(seconds):
    """Formats milliseconds below a second, seconds above, with two to three digits."""
    if seconds is None:
        return "–"
    if seconds >= 0.9995:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    value = seconds * 1e3
    return f"{value:.2f} ms" if value < 1 else f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def lab_table(rows):
    def measured(row, key):
        return ms(row["measured"][key] / 1e3) if row["measured"] else "–"

    def whole(row):
        if not row["measured"]:
            return "–"
        return ms((row["measured"]["whole_ms"] - row["measured"]["job_ms"]) / 1e3)

    def ratio(row):
        if not row["measured"]:
            return "–"
        return f"{(row['measured']['whole_ms'] - row['measured']['job_ms']) / 1e3 / row['ended']:.2f}"

    return table(("processes", "hosts", "simulated: daemons up", "simulated: end", "measured: end", "ratio"),
                 [(row["processes"], row["hosts"], ms(row["daemons_up"]), ms(row["ended"]), whole(row), ratio(row))
                  for row in rows])


def start_table(rows, standing):
    return table(("processes", "hosts", "levels", "daemons up", "orders out", "last MPI_Init done", "root knows", "job ended"),
                 [(f"{row['processes']:,}", f"{row['hosts']:,}", row["depth"], ms(row["daemons_up"]), ms(row["ordered"]),
                   ms(row["initialized"]), ms(row["known"]), ms(row["ended"]))
                  for row in rows if row["standing"] == standing])


def shares_table(rows):
    """Returns the shares of the time from mpiexec's start to its end, with standing daemons."""
    lines = []
    for row in rows:
        if not row["standing"]:
            continue
        lines.append((f"{row['processes']:,}", ms(row["ordered"] - row["daemons_up"]),
                      ms(row["initialized"] - row["ordered"]), ms(row["known"] - row["initialized"]),
                      ms(row["ended"] - row["known"]), f"{row['root_busy'] / row['ended'] * 100:.0f} %"))
    return table(("processes", "orders down", "processes start", "reports up", "end", "root's daemon busy"), lines)


def fanout_table(rows):
    fanouts = sorted({row["fanout"] for row in rows})
    lines = []
    for standing in (False, True):
        for hosts in sorted({row["hosts"] for row in rows}):
            ends = {row["fanout"]: row["ended"] for row in rows if row["hosts"] == hosts and row["standing"] == standing}
            best = min(ends.values())
            lines.append((f"{hosts:,}", "standing" if standing else "ssh",
                          *(f"**{ms(ends[f])}**" if ends[f] == best else ms(ends[f]) for f in fanouts)))
    return table(("hosts", "daemons", *(f"fan-out {f}" for f in fanouts)), lines)


def finding_table(rows):
    return table(("processes", "hosts", "next process", "five random, each fetched alone", "five random, as built",
                  "all-gather at once"),
                 [(f"{row['processes']:,}", f"{row['hosts']:,}", ms(row["neighbours"]), ms(row["random"]),
                   ms(row["as_built"]), ms(row["all_gather"])) for row in rows])


def spawn_table(rows):
    return table(("children", "hosts", "until the parent knows that all have started"),
                 [(f"{row['children']:,}", f"{row['hosts']:,}", ms(row["seconds"])) for row in rows])


def times(ratio):
    return f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"


def meeting_table(rows):
    return table(("PEs", "hosts", "shmem_init, on demand", "with all", "ratio", "hello from mpiexec, on demand", "with all", "ratio"),
                 [(f"{row['processes']:,}", f"{row['hosts']:,}", ms(row["init_demand"]), ms(row["init_all"]),
                   times(row["init_all"] / row["init_demand"]), ms(row["hello_demand"]), ms(row["hello_all"]),
                   times(row["hello_all"] / row["hello_demand"])) for row in rows])


def page(results, text):
    """Returns the page with each table between its marks replaced."""
    tables = {"lab": lab_table(results["lab"]), "ssh": start_table(results["start"], False),
              "standing": start_table(results["start"], True), "shares": shares_table(results["start"]),
              "fanout": fanout_table(results["fanout"]), "finding": finding_table(results["finding"]),
              "shmem": meeting_table(results["shmem"]),
              "spawn": spawn_table(results["spawn"])}
    for name, body in tables.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, found = pattern.subn(lambda match, body=body: match.group(1) + body + match.group(2), text)
        if found != 1:
            raise SystemExit(f"docs/scaling.md has {found} places for the table '{name}'; it needs one")
    return text


def plots(results, folder):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "starling", "font.size": 9, "axes.grid": True,
                         "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False})

    def finish(axes, name, x, y):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.legend(frameon=False, fontsize=8)
        axes.figure.tight_layout()
        axes.figure.savefig(folder / name, metadata={"Date": None})
        plt.close(axes.figure)

    _, axes = plt.subplots(figsize=(6.4, 3.8))
    for standing, label, color in ((False, "cluster, through ssh", "C0"), (True, "cluster, standing daemons", "C2")):
        rows = [row for row in results["start"] if row["standing"] == standing]
        sizes = [row["processes"] for row in rows]
        axes.plot(sizes, [row["initialized"] for row in rows], color=color, label=f"{label}: last MPI_Init done")
        axes.plot(sizes, [row["ended"] for row in rows], "--", color=color, label=f"{label}: job ended")
    lab = results["lab"]
    axes.plot([row["processes"] for row in lab], [row["ended"] for row in lab], ":", color="C3",
              label="lab (two cores for all hosts): job ended")
    points = [(row["processes"], (row["measured"]["whole_ms"] - row["measured"]["job_ms"]) / 1e3) for row in lab
              if row["measured"]]
    if points:
        axes.plot(*zip(*points), "o", color="C3", label="lab, measured")
    finish(axes, "scaling-start.svg", "processes", "seconds since mpiexec")

    _, axes = plt.subplots(figsize=(6.4, 3.4))
    for index, hosts in enumerate(sorted({row["hosts"] for row in results["fanout"]})):
        for standing, style in ((False, "-"), (True, "--")):
            rows = [row for row in results["fanout"] if row["hosts"] == hosts and row["standing"] == standing]
            axes.plot([row["fanout"] for row in rows], [row["ended"] for row in rows], style + "o", markersize=3,
                      color=f"C{index}", label=f"{hosts:,} hosts, {'standing' if standing else 'ssh'}")
    finish(axes, "scaling-fanout.svg", "fan-out of the daemon tree", "seconds, whole job")

    _, axes = plt.subplots(figsize=(6.4, 3.4))
    rows = results["finding"]
    for key, label in (("neighbours", "next process"), ("random", "five random peers, each fetched alone"),
                       ("as_built", "five random peers, as built"), ("all_gather", "all-gather at once")):
        known = [(row["processes"], row[key]) for row in rows if row[key]]
        axes.plot(*zip(*known), "-o", markersize=3, label=label)
    finish(axes, "scaling-finding.svg", "processes", "seconds")
