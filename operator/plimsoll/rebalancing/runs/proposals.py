"""Records proposals, which wait for a person's answer, and cancels those that a run no longer plans.

A record stays Planned until a person answers with an annotation: ``plimsoll.dev/approved`` with ``"true"``
carries the move out, after another judgement in the present cluster; ``"false"`` cancels it, and the same
move is not proposed again while the record is kept. Any other value is no answer. Moves of a bundle are
proposed together, cancelled together, and carried out when all of them are approved.

The approval of an earlier process's record counts once a run of this process proposes the same moves: users
may have written both, and an approved bundle reserves room and closes its node before it is judged again.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.v1alpha1.annotations import ANSWERS, APPROVED
from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.model.names import RecordKey, record_key
from plimsoll.planning.moves import Move
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.execution.feeder import MoveFeeder
from plimsoll.rebalancing.moves.events import MoveUnplanned, ProposalAnswered
from plimsoll.rebalancing.moves.outcomes import REJECTED
from plimsoll.rebalancing.moves.state import MoveStage, MoveState
from plimsoll.rebalancing.records.drafts import spec_of
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.runs.status import RunTotals


class Approvals:
    """People's answers to proposals; turns annotations into events."""

    def __init__(self, executor: MoveExecutor) -> None:
        self._executor = executor
        self._said: dict[RecordKey, bool] = {}
        self._unconfirmed: set[RecordKey] = set()  #: keys of proposals of earlier processes

    def annotated(self, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        """Read the annotations of a record that another client wrote."""
        key = record_key(namespace, name)
        answer = ANSWERS.get(annotations.get(APPROVED, ""))
        if answer is None:
            self._said.pop(key, None)
        else:
            self._said[key] = answer
        if not (answer and key in self._unconfirmed):
            self._executor.post(ProposalAnswered(key, answer))

    def forget(self, namespace: str, name: str) -> None:
        """Forget the answer on a deleted record."""
        self._said.pop(record_key(namespace, name), None)
        self._unconfirmed.discard(record_key(namespace, name))

    def take_over(self, key: RecordKey) -> bool | None:
        """The answer to a proposal of an earlier process: False, or None as long as it is not confirmed."""
        self._unconfirmed.add(key)
        return False if self._said.get(key) is False else None

    def is_confirmed(self, key: RecordKey) -> bool:
        """Whether a run of this process has proposed the move."""
        return key not in self._unconfirmed

    def confirm(self, key: RecordKey) -> None:
        """A run of this process proposes the same move."""
        if key in self._unconfirmed:
            self._unconfirmed.discard(key)
            self._executor.post(ProposalAnswered(key, self._said.get(key)))


@dataclass(eq=False)
class Proposals:
    """Proposes the moves of plans."""

    executor: MoveExecutor  #: knows the open proposals, and receives outdated ones
    approvals: Approvals
    feeder: MoveFeeder  #: receives new moves
    keeper: EvictionRecordStore
    observer: Observer  #: notified of moves that exceed the limit of records

    async def propose(self, totals: RunTotals) -> None:
        """Write missing records for the moves of a run, and cancel proposals that it no longer plans."""
        planned: defaultdict[str, list[Move]] = defaultdict(list)
        for move in totals.plan.moves:
            planned[move.bundle or move.pod.uid].append(move)
        wanted = {frozenset(map(_identity_of, group)): group for group in planned.values()}
        known = set()
        for states in self._waiting(totals.name):
            identity = frozenset(_identity(state.spec) for state in states)
            if identity in wanted and _is_complete(states) and self._is_ours(states, wanted[identity]):
                known.add(identity)
                for state in states:
                    self.approvals.confirm(state.key)
            else:
                self.executor.post(MoveUnplanned(states[0].key))
        rejected = {
            _identity(record.spec)
            for record in self.keeper.of_policy(totals.name)
            if record.spec.mode is Mode.APPROVE and record.status.reason == REJECTED
        }
        moving = self._moving()
        for identity, group in wanted.items():
            if identity in known or identity & rejected or any(move.pod.uid in moving for move in group):
                continue
            if self.keeper.has_room(totals.name, totals.spec.records, len(group)):
                await self.feeder.feed(group, totals.name, Mode.APPROVE, totals.cycle)
            else:
                for _ in group:
                    self.observer.record_dropped(totals.name, "breaker")

    def _is_ours(self, states: Sequence[MoveState], group: Sequence[Move]) -> bool:
        """Whether the records of proposals say what this process would write."""
        planned = {_identity_of(move): move for move in group}
        return all(
            self.approvals.is_confirmed(state.key)
            or _substance(spec_of(planned[_identity(state.spec)], state.policy, Mode.APPROVE))
            == _substance(state.spec)
            for state in states
        )

    def _waiting(self, policy: str) -> list[list[MoveState]]:
        """A policy's proposals that are not being carried out, grouped by bundle."""
        found: defaultdict[str, list[MoveState]] = defaultdict(list)
        for state in self.executor.machine.open.values():
            if state.policy == policy and self._waits_for_a_person(state):
                found[state.bundle].append(state)
        return list(found.values())

    def _moving(self) -> set[str]:
        """Uids of pods whose moves are carried out or done; people may answer while a run plans."""
        machine = self.executor.machine
        under_way = (each for each in machine.open.values() if not self._waits_for_a_person(each))
        gone = (each for each in machine.moves.values() if each.pod_gone)
        return {each.pod_uid for each in (*under_way, *gone)}

    def _waits_for_a_person(self, state: MoveState) -> bool:
        bundle = self.executor.machine.bundles.get(state.bundle)
        return state.stage is MoveStage.PROPOSED and (bundle is None or not bundle.due)


def _is_complete(group: Sequence[MoveState]) -> bool:
    """Whether these are all moves of their bundle, or a single move."""
    bundle = group[0].spec.bundle
    return len(group) == (bundle.moves if bundle else 1)


def _substance(spec: EvictionSpec) -> EvictionSpec:
    """A record's decision without what differs from run to run."""
    bundle = None if spec.bundle is None else spec.bundle.model_copy(update={"name": ""})
    varies = {"bundle": bundle, "reason": "", "gain": None, "gain_maximum": None, "load": None}
    return spec.model_copy(update=varies)


def _identity(spec: EvictionSpec) -> tuple[str, str, str]:
    return (spec.pod.uid, spec.strategy, spec.target_node or "")


def _identity_of(move: Move) -> tuple[str, str, str]:
    return (move.pod.uid, move.strategy, move.target)
