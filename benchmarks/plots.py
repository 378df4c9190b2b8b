"""Draws line plots as SVG from a template, reproducibly and without further packages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 190, 40, 56
_COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a", "#bf3989", "#0a7ea4")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Plot:
    """Series of (x, y); axes start at 0, or are logarithmic."""

    title: str
    x: str
    y: str
    series: Mapping[str, Points]
    log_x: bool = False
    log_y: bool = False
    dots: bool = True


_TEMPLATE = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{ width }} {{ height }}" font-family="sans-serif" font-size="12">
<rect width="{{ width }}" height="{{ height }}" fill="white"/>
<text x="{{ left }}" y="22" font-size="15">{{ plot.title }}</text>
{% for at, label in x_ticks %}
<line x1="{{ at }}" y1="{{ top }}" x2="{{ at }}" y2="{{ bottom }}" stroke="#e5e7eb"/>
<text x="{{ at }}" y="{{ bottom + 18 }}" text-anchor="middle" fill="#57606a">{{ label }}</text>
{% endfor %}
{% for at, label in y_ticks %}
<line x1="{{ left }}" y1="{{ at }}" x2="{{ right }}" y2="{{ at }}" stroke="#e5e7eb"/>
<text x="{{ left - 8 }}" y="{{ at + 4 }}" text-anchor="end" fill="#57606a">{{ label }}</text>
{% endfor %}
<text x="{{ (left + right) / 2 }}" y="{{ bottom + 40 }}" text-anchor="middle">{{ plot.x }}</text>
<text transform="translate(16 {{ (top + bottom) / 2 }}) rotate(-90)" text-anchor="middle">{{ plot.y }}</text>
{% for name, colour, points, at in drawn %}
<polyline fill="none" stroke="{{ colour }}" stroke-width="2" points="{{ points | map('join', ',') | join(' ') }}"/>
{% if plot.dots %}
{% for x, y in points %}
<circle cx="{{ x }}" cy="{{ y }}" r="3.5" fill="{{ colour }}"/>
{% endfor %}
{% endif %}
<line x1="{{ right + 12 }}" y1="{{ at }}" x2="{{ right + 30 }}" y2="{{ at }}" stroke="{{ colour }}" stroke-width="2"/>
<text x="{{ right + 36 }}" y="{{ at + 4 }}">{{ name }}</text>
{% endfor %}
</svg>
"""
)


def svg(plot: Plot) -> str:
    """Returns the plot as an SVG document, without points that lack a number. Raises ValueError when no point is left,
    and for values below a logarithmic axis."""
    series = {name: sorted(p for p in points if math.isfinite(p[1])) for name, points in plot.series.items()}
    series = {name: points for name, points in series.items() if points}
    if not series:
        raise ValueError(f"plot {plot.title!r} has no points")
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    xs = _Axis([x for points in series.values() for x, _ in points], plot.log_x, _LEFT, right)
    ys = _Axis([y for points in series.values() for _, y in points], plot.log_y, bottom, _TOP)
    drawn = [
        (
            name,
            _COLOURS[n % len(_COLOURS)],
            [(xs.at(x), ys.at(y)) for x, y in points],
            _TOP + 10 + 20 * n,
        )
        for n, (name, points) in enumerate(series.items())
    ]
    return _TEMPLATE.render(
        plot=plot,
        drawn=drawn,
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=right,
        top=_TOP,
        bottom=bottom,
        x_ticks=[(xs.at(v), short(v)) for v in xs.ticks],
        y_ticks=[(ys.at(v), short(v)) for v in ys.ticks],
    )


class _Axis:
    """Returns a function from values to positions between `start` and `end`, and the positions of the ticks."""

    def __init__(self, values: Sequence[float], log: bool, start: float, end: float) -> None:
        self._log, self._start, self._end = log, start, end
        if log:
            if min(values) <= 0:
                raise ValueError("a logarithmic axis cannot show 0 and negative values")
            low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
            high = max(high, low + 1)
            self.ticks = [10.0**n for n in range(low, high + 1)]
        else:
            step = _step(max(values) or 1.0)
            self.ticks = [n * step for n in range(math.ceil(max(values) / step) + 1)]
        if len(self.ticks) < 2:
            self.ticks.append(1.0)
        self._low, self._high = self._scaled(self.ticks[0]), self._scaled(self.ticks[-1])

    def at(self, value: float) -> float:
        share = (self._scaled(value) - self._low) / (self._high - self._low)
        return round(self._start + share * (self._end - self._start), 1)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self._log else value


def _step(highest: float) -> float:
    """Returns a round step that divides `highest` into four to eight parts."""
    size = 10.0 ** math.floor(math.log10(highest))
    return next(step for step in (size / 5, size / 2, size, 2 * size) if highest / step <= 8)


def short(value: float) -> str:
    """5000000 as 5M."""
    for size, sign in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{sign}"
    return f"{value:g}"
