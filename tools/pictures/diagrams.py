"""Draws docs/pictures/*.svg from diagrams.yaml: ``python -m pictures.diagrams docs/pictures``.

Light or dark follows the reader's system; title and description are read aloud.
"""

import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import yaml

SOURCE = Path(__file__).with_name("diagrams.yaml")

#: Size of a box, and of its cell in the grid, in units of the drawing; and what lies left of and above all.
WIDTH, HEIGHT, ACROSS, DOWN, LEFT, TOP = 150, 46, 184, 90, 20, 38

STYLE = (
    "rect{fill:#eef3fa;stroke:#445}text{fill:#223}.s{fill:#445;font-size:10.5px}.a{fill:none;stroke:#445}"
    ".h{fill:#445}.p{fill:#fff;stroke:none}"
    "@media(prefers-color-scheme:dark){rect{fill:#1c2733;stroke:#9ab}text{fill:#e6edf3}.s{fill:#b8c4d0}"
    ".a{stroke:#9ab}.h{fill:#9ab}.p{fill:#0d1117;stroke:none}}"
)

#: The head of an arrow.
HEADS = (
    '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto"><path class="h" d="M0 0 8 4 0 8z"/></marker></defs>'
)

Box = tuple[int, int, str, str]


def diagrams() -> dict[str, str]:
    """Returns each drawing as SVG, keyed by its file's name."""
    source: Mapping[str, Any] = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    return {f"{name}.svg": drawn(each) for name, each in source.items()}


def drawn(source: Mapping[str, Any]) -> str:
    """Returns a diagram as SVG.

    Raises:
        KeyError: An arrow names a box that does not exist.
    """
    boxes: Mapping[str, Box] = {name: (at[0], at[1], at[2], at[3]) for name, at in source["boxes"].items()}
    wide = LEFT * 2 + WIDTH + ACROSS * max(box[0] for box in boxes.values())
    high = TOP + HEIGHT + 20 + DOWN * max(box[1] for box in boxes.values())
    title, description = escape(source["title"]), escape(source["description"])
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
    )
    lines = [
        f'{head} role="img" aria-labelledby="t d" font-family="sans-serif" font-size="12">',
        f'<title id="t">{title}</title><desc id="d">{description}</desc><style>{STYLE}</style>',
        HEADS,
        f'<rect class="p" width="{wide}" height="{high}"/>',
        f'<text x="{LEFT}" y="20" font-weight="bold">{title}</text>',
    ]
    for arrow in source["arrows"]:
        lines += _arrow(boxes[arrow[0]], boxes[arrow[1]], arrow[2] if len(arrow) > 2 else "")
    for box in boxes.values():
        lines += _box(box)
    return "\n".join([*lines, "</svg>", ""])


def _place(box: Box) -> tuple[int, int]:
    """The left upper corner."""
    return LEFT + ACROSS * box[0], TOP + DOWN * box[1]


def _box(box: Box) -> Sequence[str]:
    x, y = _place(box)
    middle = x + WIDTH // 2
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>',
        f'<text x="{middle}" y="{y + 19}" text-anchor="middle" font-weight="bold">{escape(box[2])}</text>',
        f'<text class="s" x="{middle}" y="{y + 36}" text-anchor="middle">{escape(box[3])}</text>',
    )


def _arrow(start: Box, end: Box, label: str) -> Sequence[str]:
    """Straight along a row or a column; else down or up to the space between rows, and along it."""
    (x, y), (to_x, to_y) = _place(start), _place(end)
    middle, to_middle = x + WIDTH // 2, to_x + WIDTH // 2
    if start[1] == end[1]:
        begin, stop = (x + WIDTH, to_x - 2) if to_x > x else (x, to_x + WIDTH + 2)
        path, at = f"M{begin} {y + HEIGHT // 2}H{stop}", ((begin + stop) // 2, y + HEIGHT // 2 - 5)
    elif start[0] == end[0]:
        begin, stop = (y + HEIGHT, to_y - 2) if to_y > y else (y, to_y + HEIGHT + 2)
        path, at = f"M{middle} {begin}V{stop}", (middle + 30, (begin + stop) // 2 + 4)
    else:
        falls = to_y > y
        begin, stop = (y + HEIGHT, to_y - 2) if falls else (y, to_y + HEIGHT + 2)
        between = begin + 22 if falls else begin - 22
        path = f"M{middle} {begin}V{between}H{to_middle}V{stop}"
        at = ((middle + to_middle) // 2, between - 5)
    said = [f'<text class="s" x="{at[0]}" y="{at[1]}" text-anchor="middle">{escape(label)}</text>'] * bool(
        label
    )
    return (f'<path class="a" d="{path}" marker-end="url(#a)"/>', *said)


if __name__ == "__main__":
    for file, text in diagrams().items():
        (Path(sys.argv[1]) / file).write_text(text, encoding="utf-8")
