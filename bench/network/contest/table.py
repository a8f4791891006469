"""Tables of a comparison, and whether its goals are reached."""
import statistics

from .cases import GOALS


def median(values):
    return statistics.median(values) if values else None


def best_of(results, case, size, kind):
    """Returns the best median of one kind of contestants, or None."""
    found = []
    for key, who in results["contestants"].items():
        values = results["cases"][case.name].get(key, {}).get(str(size))
        if who["kind"] == kind and values:
            found.append(median(values))
    return case.best(found) if found else None


def print_case(results, case):
    print(f"\n{case.name}: {case.title} (in brackets: by the best of the plain sockets)")
    print(f"  {'':22}" + "".join(f"{size:>20}" for size in case.sizes))
    for key, who in results["contestants"].items():
        if key not in results["cases"][case.name]:
            continue
        cells = ""
        for size in case.sizes:
            values = results["cases"][case.name][key].get(str(size))
            raw = best_of(results, case, size, "raw")
            noisy = "~" if values and (max(values) - min(values)) > 0.15 * median(values) else " "
            cells += f"{median(values):>11.2f}{noisy}({median(values) / raw:5.2f})" if values and raw else f"{'-':>20}"
        print(f"  {who['title']:22}{cells}")
    for key, problem in results["problems"].items():
        if key.startswith(case.name + " "):
            print(f"  {key.split()[1]}: {problem}")


def print_goals(results, cases):
    """Prints each goal with the measured value. Returns whether all goals that were measured are reached."""
    print("\ngoals")
    reached = True
    for goal in GOALS:
        case = next((case for case in cases if case.name == goal.case), None)
        values = results["cases"].get(goal.case, {}).get(goal.key, {}).get(str(goal.size))
        if case is None or not values:
            print(f"  {goal.case} {goal.size} B: not measured")
            reached = False
            continue
        ours, raw = median(values), best_of(results, case, goal.size, "raw")
        peer = best_of(results, case, goal.size, "peer")
        ratio = ours / raw
        good = ratio >= goal.raw_ratio if case.larger_is_better else ratio <= goal.raw_ratio
        sign = ">=" if case.larger_is_better else "<="
        print(f"  {goal.case} {goal.size} B: {ratio:.2f} of plain sockets (wanted {sign} {goal.raw_ratio}): {verdict(good)}")
        if peer:
            better = case.advantage(ours, peer)
            print(f"  {goal.case} {goal.size} B: {better:.2f} times better than the best other library "
                  f"(wanted >= {goal.advantage}): {verdict(better >= goal.advantage)}")
            good = good and better >= goal.advantage
        reached = reached and good
    return reached


def verdict(good):
    return "reached" if good else "MISSED"
