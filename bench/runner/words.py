"""Words for the names of cases and operations, which are short for the command line."""
import re

from . import report

# Patterns of case names, the first that fits wins. Groups of the pattern fill the words.
CASES = ((r"latency", "half a round trip"),
         (r"latency-written", "half a round trip, data written before"),
         (r"latency-exchanged", "half a round trip, memory of MPI_Alloc_mem"),
         (r"all-(\d+)", "every collective, {} processes"),
         (r"latency-parent-child", "half a round trip between parent and child"),
         (r"latency-modes", "half a round trip by wait mode"),
         (r"bandwidth", "bandwidth in one direction"),
         (r"bandwidth-both", "bandwidth in both directions"),
         (r"bandwidth-parent-child", "bandwidth between parent and child"),
         (r"bandwidth-both-parent-child", "bandwidth between parent and child, both directions"),
         (r"burst", "a message of a burst of 64"),
         (r"late-receiver", "a message whose receiver computes"),
         (r"message-rate", "rate of messages"),
         (r"message-rate-parent-child", "rate of messages between parents and children"),
         (r"strangers-(\d+)-latency", "half a round trip beside {} busy loops"),
         (r"strangers-(\d+)-16-ranks", "collectives of 16 processes beside {} busy loops"),
         (r"spawn-(\d+)", "spawn of {} children"),
         (r"spawn-(\d+)-by-(\d+)", "spawn of {} children by {} parents"),
         (r"spawn-(\d+)-in-a-row", "{} spawns in a row"),
         (r"spawn-(\d+)-staying", "{} spawns whose children stay"),
         (r"connect", "ports and connections between jobs"),
         (r"connect-(\d+)\+(\d+)", "connections between jobs of {} and {} processes"),
         (r"names", "published names"),
         (r"join", "MPI_Comm_join"),
         (r"merge-(\d+)\+(\d+)", "merge of {} parents and {} children"),
         (r"comm-bcast-(\d+)", "communicator and broadcasts, {} processes"),
         (r"outstanding-(\d+)", "several non-blocking collectives, {} processes"),
         (r"planned-(\d+)", "persistent collectives, {} processes"),
         (r"overlap-(\d+)", "overlap with computation, {} processes"),
         (r"overlap-(\d+)\+(\d+)", "overlap with computation, {} parent and {} child"),
         (r"overlap-modes", "overlap with computation by wait mode"),
         (r"progress-(\d+)x", "waiting with {} processes per core"),
         (r"partners-(\d+)", "changing partners, {} processes"),
         (r"one-sided-(\w+)", "one-sided, window memory {}"),
         (r"hello-(\d+)", "start and end of {} processes"),
         (r"memory-(\d+)", "an idle process of {}"),
         (r"([a-z][a-z0-9-]*[a-z0-9])-(\d+)\+(\d+)", "{} with {} parents and {} children"),
         (r"([a-z_]+)-(\d+)\+(\d+)", "{} between groups of {} and {}"),
         (r"([a-z0-9_-]+)-(\d+)", "{}, {} processes"))
APPLICATIONS = ("task-farm", "heat2d", "adaptive-mesh", "render-farm", "hash-table", "work-stealing")
OPERATIONS = {"pss-kB": "memory in its share", "private-kB": "private memory", "init": "MPI_Init", "first-message": "first message"}


def of_case(name):
    """Returns the words for a case, or its name if there are none."""
    for pattern, words in CASES:
        found = re.fullmatch(pattern, name)
        if not found:
            continue
        if words.endswith("children") and "{} with" in words and found.group(1) not in APPLICATIONS:
            continue
        text = words.format(*found.groups())
        return re.sub(r"\b1 (parent|child|process|busy loop|spawn)(ren|es|s)\b", r"1 \1", text)
    return name


def of_operation(what):
    if what in OPERATIONS:
        return OPERATIONS[what]
    if what.startswith("after-alltoall-"):
        return of_operation(what[len("after-alltoall-"):]) + " after an alltoall"
    return what.replace("-kB", "").replace("-", " ")


def of_row(name, row):
    """Returns the words for a row: its case, its operation if the case has several, and its size."""
    what = row["what"] if row["what"] and row["what"] not in name else ""
    size = report.size_text(row["size"]) if row["size"] and str(row["size"]) not in re.findall(r"\d+", name) else ""
    return ", ".join(filter(None, (of_case(name), of_operation(what), size)))
