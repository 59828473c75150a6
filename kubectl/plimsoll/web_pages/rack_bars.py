"""RackBars: a bar for each topology domain, with the share of its nodes that each group has in a colour.

The text next to a bar says the same in words and numbers; a letter in each part tells colours apart.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from plimsoll.inspection.domain_loads import DomainFigures, DomainLoads
from plimsoll.model.counted import counted

#: Number of colours; further groups share the last one. Maximum number of bars.
COLOURS, DRAWN = 8, 200

#: Width of a bar, in units of the drawing.
WIDTH = 400


class BarPart(Struct, frozen=True):
    """The nodes of one group in one domain.

    Attributes:
        colour: 0 to ``COLOURS`` - 1.
        letter: The letter of the group.
        start: Distance from the left, as ``width`` in units of the drawing.
    """

    group: str
    colour: int
    letter: str
    start: float
    width: float


class RackBar(Struct, frozen=True):
    """One domain.

    Attributes:
        text: What the bar shows, in words.
    """

    domain: str
    parts: Sequence[BarPart]
    text: str


class RackBars(Struct, frozen=True):
    """The drawing.

    Attributes:
        label: The node label.
        left_out: Number of domains that are not drawn.
    """

    label: str
    bars: Sequence[RackBar]
    left_out: int = 0


def rack_bars(found: DomainLoads) -> RackBars | None:
    """The drawing; None if no group has a member in any domain."""
    sizes = Counter[str]()
    for each in found.domains:
        sizes.update({one.group: one.members for one in each.groups})
    if not sizes:
        return None
    ranks = {group: rank for rank, (group, _) in enumerate(sizes.most_common())}
    bars = []
    for each in found.domains:
        parts, start = [], 0.0
        for one in each.groups:
            width = round(WIDTH * one.nodes / each.nodes, 1)
            if width:
                rank = ranks[one.group]
                parts.append(BarPart(one.group, min(rank, COLOURS - 1), letter_of(rank), start, width))
            start += width
        bars.append(RackBar(each.domain or "without the label", parts, _text(each, ranks)))
    return RackBars(found.label, bars[:DRAWN], max(0, len(bars) - DRAWN))


def letter_of(rank: int) -> str:
    """A letter for each of the largest groups; "" for the others."""
    return chr(ord("A") + rank) if rank < 26 else ""


def _text(found: DomainFigures, ranks: Mapping[str, int]) -> str:
    groups = ", ".join(
        f"{letter_of(ranks[each.group])} {each.group}: {counted(each.members, 'pod')}".lstrip()
        for each in found.groups
    )
    rest = f"{found.without} of {counted(found.nodes, 'node')} without a group"
    return f"{groups}; {rest}" if groups else rest
