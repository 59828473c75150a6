"""DefragmentResource: pack small consumers so that whole blocks, such as whole GPUs, come free on a node.

Formula: a block is an amount of one resource, or of several that are of use together only. A node has ::

    blocks = min over the block's resources of floor((allocatable - requested) / amount)

free. Where pods that together request what the next block lacks can leave, and each fits another node whose
own blocks stay as many, they are moved: all of them or none. So each bundle gains a block, and when none can
be gained nothing moves. Nodes that need the fewest moves come first; a pod is sent where least is left over.

Units: quantities of the block as in requests; moves in pods.
Edges: nodes without a resource of the block have no blocks to lose, and take what fits them; pods whose
scheduler is not ours, or whose place an extender has a say in, stay.
Source: our own; the aim is that of Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
Differs: there is nothing upstream to differ from; planner Proven only.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field, StrictInt, StrictStr, field_validator

from plimsoll.framework import BoolArray, IntArray, PluginArgs
from plimsoll.framework.columns import PODS, RowArray, milli, units
from plimsoll.framework.descheduling import Planner, Strategy, StrategyContext, StrategyKind, Verdict
from plimsoll.framework.descheduling.complaints import Complaints, Vicinity, nodes_near
from plimsoll.framework.descheduling.proposals import Bundle, Candidates
from plimsoll.toolkit.descheduling.best_fit import BestFit
from plimsoll.toolkit.descheduling.room_search import moves_off, promising


class DefragmentResourceArgs(PluginArgs):
    """Arguments."""

    block: dict[StrictStr, StrictStr | StrictInt] = Field(
        min_length=1,
        description="What makes a block, by resource: whole GPUs, or a GPU with the cpu and memory that make"
        " it of use.",
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


class DefragmentResource(Strategy):
    """Free whole blocks of a resource by packing small consumers."""

    name: ClassVar = "DefragmentResource"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = DefragmentResourceArgs
    planners: ClassVar = frozenset({Planner.PROVEN})

    def __init__(self, args: DefragmentResourceArgs) -> None:
        self.args = args
        self._amounts = {resource: _amount(resource, given) for resource, given in args.block.items()}
        self._reason = "frees a block of " + ", ".join(
            f"{amount} {resource}" for resource, amount in args.block.items()
        )

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Complaints:
        """Blocks that are in use, whole or in part, over all nodes concerned."""
        block = context.snapshot.requests_row(self._amounts)
        block[PODS] = self._amounts.get("pods", 0)
        rows = [context.cluster.rows[name] for name in nodes_near(context, near)]
        snapshot = context.snapshot
        room = snapshot.allocatable[rows]
        broken = _blocks(room, block) - np.maximum(_blocks(room - snapshot.requested[rows], block), 0)
        total = float(broken.sum())
        return {"blocks are in use that could be whole": total} if total else {}

    def candidates(self, context: StrategyContext) -> Candidates:
        """Node by node, those that need the fewest moves first, until no node gains a block."""
        block = context.snapshot.requests_row(self._amounts)
        block[PODS] = self._amounts.get("pods", 0)  # a vector of requests counts the pod that makes them
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


def _blocks(free: IntArray, block: IntArray) -> IntArray:
    """Shape (N,): free blocks; what is overdrawn counts as none."""
    named = block > 0
    blocks: IntArray = np.maximum(free[:, named] // block[named], 0).min(axis=1)
    return blocks


def _deficits(rows: RowArray, block: IntArray, context: StrategyContext) -> IntArray:
    """Shape (rows, R): what one more block lacks; nothing where the node is too small for it."""
    snapshot = context.snapshot
    free = snapshot.allocatable[rows] - snapshot.requested[rows]
    wanted = (_blocks(free, block) + 1)[:, None] * block
    deficits: IntArray = np.maximum(wanted - free, 0)
    deficits[(wanted > snapshot.allocatable[rows]).any(axis=1)] = 0
    deficits[:, block == 0] = 0
    return deficits


def _keeps(free: IntArray, wanted: IntArray, block: IntArray) -> BoolArray:
    """Where the free blocks stay as many when a pod comes."""
    keeps: BoolArray = _blocks(free - wanted, block) == _blocks(free, block)
    return keeps


def _amount(resource: str, given: str | int) -> int:
    return milli(str(given)) if resource == "cpu" else units(str(given))
