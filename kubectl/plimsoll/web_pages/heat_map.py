"""HeatMap: a tile for each node and resource, with the utilisation before and after.

A tile has two bars, before on the left and after on the right. Height and shade show the utilisation in steps
of five percent. Above 100 % a bar is full and striped.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from plimsoll.inspection.picture import ClusterPicture
from plimsoll.planning.imbalance import COLUMNS
from plimsoll.simulation.report import ReplayedNode

#: Number of steps of a bar between empty and full.
STEPS = 20

#: The step for values above 100 %.
OVER = STEPS + 1

#: Maximum number of nodes for which tiles show names.
NAMED = 60


class Tile(Struct, frozen=True):
    """One node and one resource.

    Attributes:
        before: Percent of allocatable; None if the node is new.
        after: Percent; None if the node is removed.
    """

    node: str
    before: float | None
    after: float | None

    @property
    def steps(self) -> tuple[int, int]:
        """Heights of both bars, 0 to :data:`OVER`."""
        return step_of(self.before), step_of(self.after)

    @property
    def shares(self) -> str:
        """Its percentages: one if unchanged, else before and after."""
        if self.before == self.after:
            return _percent(self.before)
        was = "new" if self.before is None else _percent(self.before)
        return f"{was} → {'removed' if self.after is None else _percent(self.after)}"

    @property
    def label(self) -> str:
        """Name and percentages, for screen readers and as a tooltip."""
        return f"{self.node}: {self.shares}"


class HeatMap(Struct, frozen=True):
    """All nodes, for one resource.

    Attributes:
        title: The resource, and the kind of usage.
    """

    title: str
    tiles: Sequence[Tile]

    @property
    def named(self) -> bool:
        """Whether there are few enough nodes to show names."""
        return len(self.tiles) <= NAMED

    @property
    def framed(self) -> bool:
        """Whether changed tiles have a frame; False if most of many tiles change."""
        changed = sum(each.before != each.after for each in self.tiles)
        return self.named or 2 * changed <= len(self.tiles)


#: Percent after, by node, then by resource and kind of usage as in ``UsageChange``; None if it is removed.
Changes = Mapping[str, Mapping[tuple[str, str], float | None]]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1f} %"


def step_of(percent: float | None) -> int:
    """The height of a bar."""
    if not percent or percent < 0:
        return 0
    return OVER if percent > 100 else max(1, round(percent * STEPS / 100))


def heat_maps(
    picture: ClusterPicture, changes: Changes, *, only: Collection[tuple[str, str]] | None = None
) -> list[HeatMap]:
    """A map for each resource and kind of usage of any node; nodes without a change keep their figures.

    Nodes of the changes that are not in the picture are new. ``only`` restricts maps to resources and kinds
    of usage for which changes have figures.
    """
    maps = []
    new = sorted(set(changes) - {each.node for each in picture.nodes})
    for usage, heading in (("requests", "requested"), ("actual", "used")):
        for resource in picture.resources:
            if only is not None and (resource, usage) not in only:
                continue
            tiles = []
            for node in picture.nodes:
                known = node.requested_percent if usage == "requests" else node.used_percent
                if resource in known:
                    before = known[resource]
                    after = changes.get(node.node, {}).get((resource, usage), before)
                    tiles.append(Tile(node.node, before, after))
            tiles += [
                Tile(name, None, changes[name][resource, usage])
                for name in new
                if (resource, usage) in changes[name]
            ]
            if tiles:
                maps.append(HeatMap(f"{resource} {heading}", tiles))
    return maps


def replayed_maps(nodes: Sequence[ReplayedNode]) -> list[HeatMap]:
    """A map for each resource, with the nodes at the start and at the end of a replay."""
    named = {resource for each in nodes for resource in each.after_percent}
    return [
        HeatMap(
            f"{resource} requested",
            [
                Tile(each.node, each.before_percent.get(resource), each.after_percent[resource])
                for each in nodes
                if resource in each.after_percent
            ],
        )
        for resource in (*COLUMNS, *sorted(named - set(COLUMNS)))
        if resource in named
    ]
