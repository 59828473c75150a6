"""Proposals wait for a person: new ones are recorded, those that a run no longer plans are called off.

A record stays Planned until somebody says yes or no with an annotation: ``plimsoll.dev/approved`` with
``"true"`` carries the move out, after it was judged again in the present cluster; ``"false"`` calls it off,
and the same move is not proposed again while the record is kept. Any other value is no answer. Moves of a
bundle are proposed together, called off together, and carried out when all of them are approved.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.planning.moves import Move
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.execution.feeder import MoveFeeder
from plimsoll.rebalancing.moves.events import MoveUnplanned, ProposalAnswered, RecordDeleted
from plimsoll.rebalancing.moves.outcomes import ANSWERS, APPROVED, REJECTED
from plimsoll.rebalancing.moves.state import MoveStage, MoveState
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.runs.status import RunTotals


class Approvals:
    """What people say of proposals; annotations become events."""

    def __init__(self, executor: MoveExecutor) -> None:
        self._executor = executor
        self._said: dict[str, bool] = {}

    def annotated(self, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        """A record was written by somebody, maybe with an answer."""
        key = f"{namespace}/{name}"
        answer = ANSWERS.get(annotations.get(APPROVED, ""))
        if answer is None:
            self._said.pop(key, None)
        else:
            self._said[key] = answer
        self._executor.post(ProposalAnswered(key, answer))

    def forget(self, namespace: str, name: str) -> None:
        """A record is gone."""
        self._said.pop(f"{namespace}/{name}", None)
        self._executor.post(RecordDeleted(f"{namespace}/{name}"))

    def answer(self, key: str) -> bool | None:
        """What was said of a proposal, None when nothing was."""
        return self._said.get(key)


@dataclass(eq=False)
class Proposals:
    """Proposes the moves of plans."""

    executor: MoveExecutor  #: knows the proposals that wait, and receives what the plan no longer holds
    feeder: MoveFeeder  #: receives new moves
    keeper: EvictionRecordStore
    observer: Observer  #: notified of moves for which there is no room among the records

    async def propose(self, totals: RunTotals) -> None:
        """Write a record for each move of a run that has none, and call off what its plan no longer holds."""
        planned: defaultdict[str, list[Move]] = defaultdict(list)
        for move in totals.plan.moves:
            planned[move.bundle or move.pod.uid].append(move)
        wanted = {frozenset(map(_identity_of, group)): group for group in planned.values()}
        known = set()
        for states in self._waiting(totals.name):
            identity = frozenset(_identity(state.spec) for state in states)
            if identity in wanted and _is_complete(states):
                known.add(identity)
            else:
                self.executor.post(MoveUnplanned(states[0].key))
        rejected = {
            _identity(record.spec)
            for record in self.keeper.of_policy(totals.name)
            if record.spec.mode is Mode.APPROVE and record.status.reason == REJECTED
        }
        for identity, group in wanted.items():
            if identity in known or identity & rejected:
                continue
            if self.keeper.has_room(totals.name, totals.spec.records, len(group)):
                await self.feeder.feed(group, totals.name, Mode.APPROVE, totals.cycle)
            else:
                for _ in group:
                    self.observer.record_dropped(totals.name, "breaker")

    def _waiting(self, policy: str) -> list[list[MoveState]]:
        """Proposals of a policy that are not being carried out, those of a bundle together."""
        machine = self.executor.machine
        found: defaultdict[str, list[MoveState]] = defaultdict(list)
        for state in machine.moves.values():
            bundle = machine.bundles.get(state.bundle)
            if (
                state.stage is MoveStage.PROPOSED
                and state.policy == policy
                and (bundle is None or not bundle.due)
            ):
                found[state.bundle].append(state)
        return list(found.values())


def _is_complete(group: Sequence[MoveState]) -> bool:
    """Whether these are all moves of their bundle, or one that stands alone."""
    bundle = group[0].spec.bundle
    return len(group) == (bundle.moves if bundle else 1)


def _identity(spec: EvictionSpec) -> tuple[str, str, str]:
    return (spec.pod.uid, spec.strategy, spec.target_node or "")


def _identity_of(move: Move) -> tuple[str, str, str]:
    return (move.pod.uid, move.strategy, move.target)
