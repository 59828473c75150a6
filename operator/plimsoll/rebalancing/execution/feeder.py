"""MoveFeeder hands the moves of a run to the machine, one bundle after the other.

The next bundle follows when the one before it is over, or waits for another move of its workload: what became
of it is known to the planner that judges the next.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.planning.history import Memory
from plimsoll.planning.moves import Move
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.execution.revalidation import MoveRevalidator
from plimsoll.rebalancing.moves.bundles import beneficiaries_of, bundle_of
from plimsoll.rebalancing.moves.events import BundlePlanned, MovePlanned
from plimsoll.rebalancing.moves.state import BundleState
from plimsoll.rebalancing.records.drafts import first_message, first_reason, key_of, spec_of
from plimsoll.rebalancing.run_status import RunTotals


@dataclass(frozen=True, slots=True)
class MoveFeeder:
    """Feeds moves."""

    executor: MoveExecutor
    revalidator: MoveRevalidator
    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance at any moment; the key is the name
    empties: Callable[[Move], bool]  #: whether a move empties its node together with others

    async def carry_out(self, totals: RunTotals, memory: Memory) -> None:
        """Make the moves of a run; ``memory`` is what past moves teach.

        Raises:
            Exception: What broke the judgement of a move; the rest of the run is dropped.
        """
        name = totals.policy.metadata.name
        with self.remembering(totals.cycle, memory):
            for _, group in groupby(enumerate(totals.plan.moves), lambda each: each[1].bundle or each[0]):
                if self.policies.get(name) is not totals.policy:
                    return  # changed, suspended or deleted meanwhile: the rest is dropped
                await self.feed([move for _, move in group], name, Mode.ENFORCE, totals.cycle)

    @contextmanager
    def remembering(self, run: str, memory: Memory) -> Iterator[None]:
        """During a run its moves are judged with what past moves taught when it began."""
        self.revalidator.memories[run] = memory
        try:
            yield
        finally:
            self.revalidator.memories.pop(run, None)

    async def feed(self, moves: Sequence[Move], policy: str, mode: Mode, run: str) -> Sequence[str]:
        """Have moves made that go together, or one, or proposed; their keys.

        Args:
            moves: Of one bundle, in order.
            policy: Whose decision it is.
            mode: Whether they are made, or proposed.
            run: Tells this decision from others about the same pods.

        Returns:
            When they are made or proposed, are not, or wait for another move of their workload.

        Raises:
            Exception: What broke the judgement of one.
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
        state = BundleState(bundle, policy, keys, len(keys), due=mode is not Mode.APPROVE)
        if mode is Mode.ENFORCE:
            empties = first.move.source if self.empties(first.move) else ""
            state = replace(state, empties=empties, beneficiaries=beneficiaries_of(first.move))
        self.executor.post(BundlePlanned(state), *planned)
        machine, executor = self.executor.machine, self.executor
        await executor.progress.until(lambda: machine.is_quiet(bundle) and executor.is_idle(*keys))
        problems = [self.revalidator.problems.pop(key, None) for key in keys]
        for problem in filter(None, problems):
            raise problem
        return keys
