"""TimeLine draws a figure over time, one line per set of policies."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

#: Size of the drawing.
WIDTH, HEIGHT = 640, 120

#: Maximum points of a line; thinning keeps the highest of the skipped points.
POINTS = 320


class Curve(Struct, frozen=True):
    """One line: its label, its points in SVG's notation, and its last and highest value."""

    label: str
    points: str
    last: float
    highest: float


class TimeLine(Struct, frozen=True):
    """The drawing.

    Attributes:
        top: Value at the upper edge; the lower edge is 0.
        seconds: Time at the right edge; the left edge is 0.
    """

    title: str
    curves: Sequence[Curve]
    top: float
    seconds: int


def time_line(
    title: str, lines: Iterable[tuple[str, Sequence[tuple[int, float]]]], least_top: float = 0.0
) -> TimeLine:
    """Draw each label's values by seconds, in ascending order; the scale ends at ``least_top`` or above."""
    thinned = [(label, _thinned(samples)) for label, samples in lines]
    top = max((figure for _, samples in thinned for _, figure in samples), default=0.0)
    top = max(top, least_top) or 1.0
    seconds = max((at for _, samples in thinned for at, _ in samples), default=0) or 1
    curves = [
        Curve(
            label,
            " ".join(
                f"{WIDTH * at / seconds:.1f},{HEIGHT * (1 - figure / top):.1f}" for at, figure in samples
            ),
            samples[-1][1],
            max(figure for _, figure in samples),
        )
        for label, samples in thinned
        if samples
    ]
    return TimeLine(title, curves, top, seconds)


def _thinned(samples: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    if len(samples) <= POINTS:
        return samples
    size = -(-len(samples) // POINTS)
    parts = [samples[start : start + size] for start in range(0, len(samples), size)]
    return [samples[0], *(max(part, key=lambda each: each[1]) for part in parts), samples[-1]]
