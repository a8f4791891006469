"""Plots of lines on two logarithmic axes as SVG text, for documents: the page (page.py) draws its charts in the browser."""
import html
import math

COLORS = {"starling": "#c0392b", "starling-poll": "#e59866", "starling-thread": "#922b21", "limit": "#555555",
          "openmpi4": "#1f77b4", "openmpi4-tuned": "#7fb2d9", "openmpi5": "#17a589", "openmpi5-tuned": "#76d7c4",
          "mpich4": "#7d3c98", "mpich4-tuned": "#bb8fce", "mpich5": "#b7950b", "mpich5-tuned": "#f4d03f",
          "mpich5-ofi": "#935116", "mpich5-async": "#dc7633", "mpich5-tcp": "#a04000",
          "impi": "#e67e22", "impi-tuned": "#f5cba7"}
OTHER = "#999999"
WIDTH, HEIGHT = 620, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 30, 45


def color_of(key):
    return COLORS.get(key, OTHER)


def text(x, y, words, anchor="start", size=11, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra}>{html.escape(words)}</text>'


def number_text(value):
    for unit, factor in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return f"{value:g}"


class Axis:
    """A logarithmic axis from the least to the largest value of the data."""

    def __init__(self, values, begin, end):
        low, high = min(values), max(values)
        self.low = math.log10(low)
        self.high = max(math.log10(high), self.low + 0.1)
        self.begin, self.end = begin, end

    def place(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        """Returns powers of ten; if there are few, also their multiples by two and five."""
        first, last = math.floor(self.low), math.ceil(self.high)
        steps = (1,) if last - first > 3 else (1, 2, 5)
        all_ticks = [step * 10.0 ** power for power in range(first, last + 1) for step in steps]
        return [tick for tick in all_ticks if self.low - 1e-9 <= math.log10(tick) <= self.high + 1e-9]


def size_text(size):
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{int(size) // factor}{unit}"
    return f"{size:g}"


def lines(title, series, x_label, y_label):
    """Plots lines; `series` is {key: [(x, y), ...]}. Points that a logarithmic axis can't show are left out."""
    series = {key: sorted((x, y) for x, y in points if x > 0 and y > 0) for key, points in series.items()}
    series = {key: points for key, points in series.items() if points}
    if not series:
        return ""
    points = [point for of_key in series.values() for point in of_key]
    x_axis = Axis([x for x, _ in points], LEFT, WIDTH - RIGHT)
    y_axis = Axis([y for _, y in points], HEIGHT - BOTTOM, TOP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif">',
             text(LEFT, 18, title, size=14)]
    for tick in y_axis.ticks():
        y = y_axis.place(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, y + 4, number_text(tick), "end"))
    for tick in spread_out({x for x, _ in points}, x_axis):
        parts.append(text(x_axis.place(tick), HEIGHT - BOTTOM + 16, size_text(tick), "middle"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_label, "middle"))
    parts.append(text(14, (TOP + HEIGHT - BOTTOM) / 2, y_label, "middle",
                      extra=f' transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2:.0f})"'))
    for number, (key, of_key) in enumerate(series.items()):
        parts += one_line(key, of_key, x_axis, y_axis, number)
    return "\n".join(parts + ["</svg>"])


def spread_out(values, axis, least=28):
    """Returns the values whose labels don't overlap."""
    chosen = []
    for value in sorted(values):
        if not chosen or axis.place(value) - axis.place(chosen[-1]) >= least:
            chosen.append(value)
    return chosen


def one_line(key, points, x_axis, y_axis, number):
    color = color_of(key)
    look = ' stroke-dasharray="4 3"' if key == "limit" else ""
    width = 2.5 if key == "starling" else 1.3
    path = " ".join(f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y in points)
    parts = [f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"{look}/>']
    for x, y in points:
        parts.append(f'<circle cx="{x_axis.place(x):.1f}" cy="{y_axis.place(y):.1f}" r="2.5" fill="{color}">'
                     f"<title>{html.escape(key)}: {size_text(x)}, {y:.4g}</title></circle>")
    y = TOP + 12 + 15 * number
    parts.append(f'<line x1="{WIDTH - RIGHT + 8}" x2="{WIDTH - RIGHT + 28}" y1="{y - 4}" y2="{y - 4}" stroke="{color}" '
                 f'stroke-width="{width}"{look}/>')
    return parts + [text(WIDTH - RIGHT + 33, y, key)]
