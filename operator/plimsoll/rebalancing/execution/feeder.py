"""Passes the moves of a run to the machine, one bundle after the other.

The next bundle follows when the earlier one is over, or waits for another move of its workload. The planner
thus knows its outcome when it judges the next.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.names import PolicyName, RecordKey
from plimsoll.planning.history import MoveHistory
from plimsoll.planning.moves import Move
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.execution.revalidation import MoveRevalidator
from plimsoll.rebalancing.moves.bundles import beneficiaries_of, bundle_of
from plimsoll.rebalancing.moves.events import BundlePlanned, MovePlanned
from plimsoll.rebalancing.moves.state import BundleState
from plimsoll.rebalancing.records.drafts import first_message, first_reason, key_of, spec_of


class MoveFeeder(Struct, frozen=True):
    """Passes moves to the machine."""

    executor: MoveExecutor
    revalidator: MoveRevalidator
    empties: Callable[[Move], bool]  #: whether a move empties its node together with others

    def remembering(
        self, run: str, memory: MoveHistory, cluster: Cluster | None = None
    ) -> AbstractContextManager[None]:
        """Within this context, moves of the run are judged as :meth:`MoveRevalidator.remembering` says."""
        return self.revalidator.remembering(run, memory, cluster)

    async def feed(
        self, moves: Sequence[Move], policy: PolicyName, mode: Mode, run: str
    ) -> Sequence[RecordKey]:
        """Have a bundle or a single move made or proposed; returns the moves' keys.

        Args:
            moves: The moves of one bundle, in order.
            policy: The policy that decided.
            mode: Whether to make or to propose them.
            run: Distinguishes this decision from others about the same pods.

        Returns:
            When all are made, proposed or dropped, or wait for another move of their workload.

        Raises:
            Exception: What the judgement of one raised.
        """
        ordered = sorted(moves, key=lambda move: move.waits) if mode is Mode.ENFORCE else moves
        planned = [
            MovePlanned(
                key_of(move, policy, mode, run),
                spec_of(move, policy, mode),
                move,
                run,
                first_reason(mode, move),
                first_message(move, mode),
            )
            for move in ordered
        ]
        keys, first = tuple(each.key for each in planned), planned[0]
        bundle = bundle_of(first.spec, first.key)
        state = BundleState(
            bundle, policy, keys, len(keys), due=mode is not Mode.APPROVE, whole=bool(first.move.whole)
        )
        if mode is Mode.ENFORCE:
            empties = first.move.source if self.empties(first.move) else ""
            state = replace(state, empties=empties, beneficiaries=beneficiaries_of(first.move))
        self.executor.post(BundlePlanned(state), *planned)
        machine, executor = self.executor.machine, self.executor
        await executor.progress.until(lambda: machine.is_quiet(bundle) and executor.is_idle(*keys))
        self.revalidator.raise_problem_of(keys)
        return keys
