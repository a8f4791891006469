"""The shape of the daemon tree: which daemon starts which."""


def runs(first, end, parts):
    """Splits the hosts first … end-1 into at most `parts` runs of about the same length (as launch/tree does)."""
    count = end - first
    parts = min(parts, count)
    return [(first + count * i // parts, first + count * (i + 1) // parts) for i in range(parts)]


class Tree:
    """The tree of the hosts 0 (the root) … hosts-1. The first host of a run of hosts is the parent of the rest, which is split into
    runs again."""

    def __init__(self, hosts, fanout):
        self.hosts = hosts
        self.fanout = fanout
        self.parent = [-1] * hosts
        self.depth = [0] * hosts
        self.end = [0] * hosts  # the subtree of h is h … end[h]-1
        self.children = [()] * hosts
        self.end[0] = hosts
        todo = [(0, 1, hosts)]
        while todo:
            parent, first, end = todo.pop()
            heads = []
            for run_first, run_end in runs(first, end, fanout):
                self.parent[run_first] = parent
                self.depth[run_first] = self.depth[parent] + 1
                self.end[run_first] = run_end
                heads.append(run_first)
                if run_first + 1 < run_end:
                    todo.append((run_first, run_first + 1, run_end))
            self.children[parent] = tuple(heads)

    def path(self, source, target):
        """Returns the hosts from source to target, both included: up to the common ancestor, then down."""
        up, down = [source], [target]
        while up[-1] != down[-1]:
            if self.depth[up[-1]] >= self.depth[down[-1]]:
                up.append(self.parent[up[-1]])
            else:
                down.append(self.parent[down[-1]])
        return up + down[-2::-1]
