"""Placements (half a round trip of a cache line between two cores, in ns) and their classes. A value belongs to a class, and only
values of one class are compared. This module runs no commands."""
import math
import statistics
from dataclasses import dataclass

AGREE = 1.3  # two placements are the same if their ratio is at most this
BIN = 1.1  # placements are counted in bins of this ratio
RARE = 0.01  # share of the placements in a bin below which the bin is a transition between two classes
MANY = 100  # minimum number of placements for which rare ones are left out


@dataclass(frozen=True)
class Class:
    name: str
    low: float
    high: float
    count: int

    def holds(self, placement):
        return self.low / BIN <= placement <= self.high * BIN


ANYWHERE = Class("", 0.0, math.inf, 0)  # class of values that were measured without observing the placement


def agree(one, other):
    """Returns whether two placements are known and differ by no more than the factor AGREE."""
    return one > 0 and other > 0 and max(one, other) <= AGREE * min(one, other)


def classes_of(placements):
    """Returns the classes of these placements, nearest cores first, with a gap between two of them."""
    known = sorted(placement for placement in placements if placement > 0)
    bins = {}
    for placement in known:
        bins.setdefault(bin_of(placement), []).append(placement)
    least = RARE * len(known) if len(known) >= MANY else 0
    groups = []
    for placement in (one for number in sorted(bins) if len(bins[number]) > least for one in bins[number]):
        if groups and placement <= AGREE * groups[-1][-1]:
            groups[-1].append(placement)
        else:
            groups.append([placement])
    return [Class(f"{statistics.median(group):.0f} ns", group[0], group[-1], len(group)) for group in groups]


def bin_of(placement):
    return math.floor(math.log(placement) / math.log(BIN))


def by_class(values, classes):
    """Converts {library: [(value, placement), ...]} to {class: {library: [value, ...]}}. Values measured without observing the
    placement are in ANYWHERE; values that fit no class are left out."""
    found = {}
    for key, pairs in values.items():
        for value, placement in pairs:
            one = ANYWHERE
            if placement is not None:
                one = next((one for one in classes if one.holds(placement)), None)
            if one:
                found.setdefault(one, {}).setdefault(key, []).append(value)
    return found


def left_aside(count):
    """Returns how many of the lowest and of the highest of `count` turns don't count for the spread. It is a fifth of them, because a
    single interruption is not noise; or, if more, those outside the 95 % confidence interval of the median. More turns thus make a
    median more certain, even if single turns scatter widely."""
    below, tail = 0, 0.5**count
    while tail <= 0.025:  # the probability that the true median is below the next of the lowest turns
        below += 1
        tail += math.comb(count, below) * 0.5**count
    return max(count // 5, below - 1)


def summary(numbers, spread):
    """Returns the median and the extremes."""
    median = statistics.median(numbers)
    aside = left_aside(len(numbers))
    inner = sorted(numbers)[aside : len(numbers) - aside]
    relative = (inner[-1] - inner[0]) / median if median else 0.0
    return {"median": median, "min": min(numbers), "max": max(numbers), "turns": len(numbers),
            "spread": round(relative, 4), "noisy": relative > spread}


class Row:
    """The values of one row by class, and the libraries that need more turns."""

    def __init__(self, values, classes, own, is_peer, larger_is_better, spread):
        self.own, self.is_peer, self.larger_is_better = own, is_peer, larger_is_better
        self.classes = {one: {key: summary(numbers, spread) for key, numbers in of_class.items()}
                        for one, of_class in sorted(by_class(values, classes).items(), key=lambda pair: pair[0].low)}
        self.kept = sum(cell["turns"] for cells in self.classes.values() for cell in cells.values())

    def best_peer(self, one):
        """Returns the peer with the best median in a class, or None."""
        peers = [(cell["median"], key) for key, cell in self.classes[one].items() if self.is_peer(key)]
        if not peers:
            return None
        return (max(peers) if self.larger_is_better else min(peers))[1]

    def chosen(self):
        """Returns the class with the most values. A class has as many values as Starling or the best peer, whichever has fewer."""

        def known(one):
            cells = self.classes[one]
            counts = [cells[key]["turns"] if key in cells else 0 for key in (self.own, self.best_peer(one))]
            return min(counts), sum(counts)

        return max(self.classes, key=known) if self.classes else None

    def missing(self, wanted, others, keys):
        """Returns the libraries for which another turn would help: our own and the best peer if their values in the
        chosen class are noisy or fewer than wanted, and others that have fewer than `others` values there.
        Empty: the row is settled."""
        one = self.chosen()
        if one is None:
            return set(keys)
        cells, best = self.classes[one], self.best_peer(one)
        found = set()
        for key in keys:
            turns = cells[key]["turns"] if key in cells else 0
            if turns < (wanted if key in (self.own, best) else others):
                found.add(key)
            elif key in (self.own, best) and cells[key]["noisy"]:
                found.add(key)
        return found
