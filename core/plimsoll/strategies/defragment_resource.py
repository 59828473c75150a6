"""DefragmentResource: pack small consumers to free whole blocks, such as whole GPUs, on a node.

Formula: a block is an amount of one resource, or of several that are only useful together. A node has ::

    blocks = min over the block's resources of floor((allocatable - requested) / amount)

free. If pods that together request what the next block lacks can leave, and each fits another node without
reducing that node's blocks, they are moved: all of them or none. So each bundle gains a block; if no block
can be gained, nothing moves. Nodes that need the fewest moves come first. A pod is sent where the least is
left over.

With ``devices``, or for an extended resource of the block that a DeviceClass serves, a block is a group of
devices (of one link group, if requested) and the rest of the block with it. The groups of a node are those
that claims would get one after another; a search determines the pods that must leave for one more group.

Units: quantities of the block as in requests; moves in pods.
Edges: pods that share their devices with others stay; so do pods of other schedulers, and pods that an
extender is interested in. Nodes without a resource of the block have no blocks to lose, and accept any pods
that fit.
Source: our own; the aim is that of Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
Differs: there is nothing upstream to differ from; planner Proven only.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import ClassVar, Self

import numpy as np
from pydantic import Field, StrictInt, StrictStr, field_validator, model_validator

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.device_blocks import BlockCount, DeviceGroup, blocks_of, open_devices
from plimsoll.devices.device_room import DeviceRoom
from plimsoll.devices.device_rows import DeviceRows
from plimsoll.devices.taken import Taken
from plimsoll.framework import BoolArray, IntArray, Node, PluginArgs
from plimsoll.framework.columns import PODS, RowArray, milli, units
from plimsoll.framework.descheduling import Planner, Strategy, StrategyContext, StrategyKind, Verdict
from plimsoll.framework.descheduling.complaints import Complaint, Complaints, Vicinity, nodes_near
from plimsoll.framework.descheduling.proposals import Bundle, Candidates
from plimsoll.toolkit.counted_words import counted
from plimsoll.toolkit.descheduling.best_fit import BestFit
from plimsoll.toolkit.descheduling.room_search import moves_off, promising

#: Blocks that need no other resources.
_NO_END = 2**31


class DeviceBlockArgs(PluginArgs):
    """Devices that are only useful together."""

    device_class_name: StrictStr = Field(min_length=1, description="Name of their DeviceClass.")
    count: StrictInt = Field(default=1, ge=1, le=32, description="How many devices make a block.")
    selector: StrictStr = Field(
        default="", description="What each of them must be like, in CEL, as in requests of claims."
    )
    match_attribute: StrictStr = Field(
        default="", description="An attribute that all devices of a block share, such as their link group."
    )


class DefragmentResourceArgs(PluginArgs):
    """Arguments."""

    block: dict[StrictStr, StrictStr | StrictInt] = Field(
        default={},
        description="What makes a block, by resource: whole GPUs, or a GPU with the cpu and memory that make"
        " it of use. Required unless there are devices.",
    )
    devices: DeviceBlockArgs | None = Field(
        default=None, description="Devices that a block has, with the amounts above if there are some."
    )
    max_moves_per_block: int = Field(
        default=5, ge=1, le=110, description="A block that needs more moves than this is not worth it."
    )
    highest_priority: int = Field(default=0, description="Pods of a higher priority stay.")

    @field_validator("block")
    @classmethod
    def _is_something(cls, block: dict[str, str | int]) -> dict[str, str | int]:
        for resource, amount in block.items():
            try:
                parsed = _amount(resource, amount)
            except ValueError as exc:
                raise ValueError(f"{resource}: {exc}") from exc
            if parsed <= 0:
                raise ValueError(f"{resource}: {amount} is not more than nothing")
        return block

    @model_validator(mode="after")
    def _has_something(self) -> Self:
        if not self.block and self.devices is None:
            raise ValueError("block or devices: one of them must be given")
        return self


class DefragmentResource(Strategy):
    """Free whole blocks of a resource by packing small consumers."""

    name: ClassVar = "DefragmentResource"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = DefragmentResourceArgs
    planners: ClassVar = frozenset({Planner.PROVEN})

    def __init__(self, args: DefragmentResourceArgs) -> None:
        self.args = args
        self._amounts = {resource: _amount(resource, given) for resource, given in args.block.items()}
        parts = [f"{amount} {resource}" for resource, amount in args.block.items()]
        self._group: DeviceGroup | None = None
        if (asked := args.devices) is not None:
            alike = f" of one {asked.match_attribute}" if asked.match_attribute else ""
            parts.insert(0, f"{counted(asked.count, 'device')} of class {asked.device_class_name}{alike}")
            self._group = DeviceGroup(
                asked.device_class_name, asked.count, asked.selector, asked.match_attribute
            )
        self._reason = "frees a block of " + ", ".join(parts)

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Blocks in use, whole or in part, over all nodes in scope."""
        rows = [context.cluster.rows[name] for name in nodes_near(context, near)]
        if (devices := self._of_devices(context)) is not None:
            total = float(devices.broken(rows))
            return {Complaint("blocks are in use that could be whole"): total} if total else {}
        block = context.snapshot.requests_row(self._amounts)
        block[PODS] = self._amounts.get("pods", 0)
        snapshot = context.snapshot
        room = snapshot.allocatable[rows]
        broken = _blocks(room, block) - np.maximum(_blocks(room - snapshot.requested[rows], block), 0)
        total = float(broken.sum())
        return {Complaint("blocks are in use that could be whole"): total} if total else {}

    def candidates(self, context: StrategyContext) -> Candidates:
        """Bundles node by node, those that need the fewest moves first, until no node gains a block."""
        if (devices := self._of_devices(context)) is not None:
            yield from self._device_bundles(devices, context)
            return
        block = context.snapshot.requests_row(self._amounts)
        block[PODS] = self._amounts.get("pods", 0)  # in a vector of requests, the pod itself counts
        gained = True
        closed: set[int] = set()
        while gained:
            gained = False
            snapshot = context.snapshot
            considered = np.array([context.cluster.rows[name] for name in context.nodes], dtype=np.intp)
            rows = considered[(snapshot.allocatable[considered] >= block).all(axis=1)]
            rows = rows[~np.isin(rows, list(closed))]
            most, highest = self.args.max_moves_per_block, self.args.highest_priority
            rows, _ = promising(rows, _deficits(rows, block, context), snapshot, most, highest)
            for row in rows.tolist():
                (deficit,) = _deficits(np.array([row], dtype=np.intp), block, context)
                fit = BestFit(context, lambda free, wanted: _keeps(free, wanted, block))
                moves = moves_off(row, deficit, context, fit, most=most, highest=highest, reason=self._reason)
                if not moves:
                    continue
                if (yield Bundle(moves)) is Verdict.ACCEPTED:
                    gained = True
                else:
                    closed.add(row)

    def _of_devices(self, context: StrategyContext) -> "_DeviceNodes | None":
        """Blocks of devices, if the policy requests some or a class serves a resource of the block."""
        book = context.objects.known_ledger(DeviceBook)
        group, amounts = self._group, self._amounts
        if book is not None and group is None:
            for name, amount in self._amounts.items():
                served = book.class_of_resource(name)
                axis = context.cluster.axis_of(name)
                if served is not None and (axis is None or not context.snapshot.allocatable[:, axis].any()):
                    group = DeviceGroup(served.name, amount)
                    amounts = {other: most for other, most in self._amounts.items() if other != name}
                    break
        return None if book is None or group is None else _DeviceNodes(context, book, group, amounts)

    def _device_bundles(self, nodes: "_DeviceNodes", context: StrategyContext) -> Candidates:
        """Bundles that gain a block of devices each, the fewest lacking devices first."""
        most, highest = self.args.max_moves_per_block, self.args.highest_priority
        room = DeviceRoom(context, most=most, highest=highest, reason=self._reason)
        closed: set[int] = set()
        gained = True
        while gained:
            gained = False
            before = nodes.all_free()
            for row, missing in nodes.short(before, closed):
                count = int(before[row])
                moves = room.moves_off(
                    row,
                    partial(nodes.gains, row, count),
                    nodes.deficit(row, count + 1),
                    partial(nodes.keeps, before),
                    missing,
                )
                closed.add(row)
                if moves and (yield Bundle(moves)) is Verdict.ACCEPTED:
                    closed.discard(row)
                    gained = True
                    break


class _DeviceNodes:
    """Blocks of devices with amounts of resources, by row of the cluster."""

    def __init__(
        self, context: StrategyContext, book: DeviceBook, group: DeviceGroup, amounts: Mapping[str, int]
    ) -> None:
        self._context, self._book, self._group = context, book, group
        self._block = context.snapshot.requests_row(dict(amounts))
        self._block[PODS] = amounts.get("pods", 0)
        self._counts = DeviceRows(context.cluster, book, self._counts_on, 3)

    def free(self, row: int) -> int:
        """The number of free blocks."""
        rows = np.array([row])
        return int(min(self._counted(row).free, self._others(self._rooms(rows))[0]))

    def broken(self, rows: Sequence[int]) -> int:
        """The number of these nodes' blocks that are in use, whole or in part."""
        counted = [self._counted(row) for row in rows]
        at = np.array(rows, dtype=np.intp)
        most = np.minimum(
            [each.most for each in counted], self._others(self._context.snapshot.allocatable[at])
        )
        free = np.minimum([each.free for each in counted], self._others(self._rooms(at)))
        return int((most - free).sum())

    def all_free(self) -> IntArray:
        """Shape (N,): free blocks of every node."""
        free: IntArray = np.minimum(self._counts.values()[:, 0], self._others(self._rooms()))
        return free

    def short(self, free: IntArray, closed: Collection[int]) -> list[tuple[int, int]]:
        """Nodes that could gain a block, with the number of devices that they lack for it, the fewest first.

        Args:
            free: Shape (N,): their free blocks.
            closed: Rows that are left out.
        """
        cluster, snapshot = self._context.cluster, self._context.snapshot
        counts = self._counts.values()
        rows = np.array([cluster.rows[name] for name in self._context.nodes], dtype=np.intp)
        most = np.minimum(counts[rows, 1], self._others(snapshot.allocatable[rows]))
        rows = rows[(free[rows] < most) & ~np.isin(rows, list(closed))]
        missing = np.maximum((free[rows] + 1) * self._group.count - counts[rows, 2], 0)
        order = np.lexsort((cluster.name_ranks[rows], missing))
        return list(zip(rows[order].tolist(), missing[order].tolist(), strict=True))

    def gains(self, row: int, before: int, taken: Taken) -> bool:
        """Whether taking those devices gives a node more blocks of devices."""
        blocks = blocks_of(self._group, self._book)
        return blocks.if_taken(self._context.cluster.nodes[row], self._book, taken) > before

    def keeps(self, before: IntArray, node: Node) -> bool:
        """Whether a node to which a pod was moved on trial has as many free blocks as before."""
        row = self._context.cluster.rows[node.name]
        return self.free(row) >= int(before[row])

    def deficit(self, row: int, count: int) -> IntArray:
        """Shape (R,): the amounts of other resources that this number of blocks lacks."""
        lacking: IntArray = np.maximum(count * self._block - self._rooms(np.array([row]))[0], 0)
        lacking[self._block == 0] = 0
        return lacking

    def _counted(self, row: int) -> BlockCount:
        return blocks_of(self._group, self._book).on(self._context.cluster.nodes[row], self._book)

    def _counts_on(self, node: Node) -> tuple[int, int, int]:
        """The numbers of free groups, of all groups, and of devices that a claim may still get."""
        counted = blocks_of(self._group, self._book).on(node, self._book)
        left = open_devices(self._book.slices.pools_of(node), self._book.taken)
        return counted.free, counted.most, left

    def _rooms(self, rows: RowArray | slice = slice(None)) -> IntArray:
        """Shape (rows, R): the free amounts."""
        snapshot = self._context.snapshot
        room: IntArray = snapshot.allocatable[rows] - snapshot.requested[rows]
        return room

    def _others(self, room: IntArray) -> IntArray:
        """Shape (rows,): the number of blocks for which the other resources suffice."""
        if not self._block.any():
            return np.full(len(room), _NO_END)
        return _blocks(room[:, : len(self._block)], self._block)


def _blocks(free: IntArray, block: IntArray) -> IntArray:
    """Shape (N,): free blocks; an overcommitted node has none."""
    named = block > 0
    blocks: IntArray = np.maximum(free[:, named] // block[named], 0).min(axis=1)
    return blocks


def _deficits(rows: RowArray, block: IntArray, context: StrategyContext) -> IntArray:
    """Shape (rows, R): what one more block lacks; zero if the node is too small for it."""
    snapshot = context.snapshot
    free = snapshot.allocatable[rows] - snapshot.requested[rows]
    wanted = (_blocks(free, block) + 1)[:, None] * block
    deficits: IntArray = np.maximum(wanted - free, 0)
    deficits[(wanted > snapshot.allocatable[rows]).any(axis=1)] = 0
    deficits[:, block == 0] = 0
    return deficits


def _keeps(free: IntArray, wanted: IntArray, block: IntArray) -> BoolArray:
    """Whether the number of free blocks stays the same when the pod is added."""
    keeps: BoolArray = _blocks(free - wanted, block) == _blocks(free, block)
    return keeps


def _amount(resource: str, given: str | int) -> int:
    return milli(str(given)) if resource == "cpu" else units(str(given))
