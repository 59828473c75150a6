"""Proposals wait for a person: new ones are recorded, those that a run no longer plans are called off.

A record stays Planned until somebody says yes or no with an annotation: ``plimsoll.dev/approved`` with
``"true"`` carries the move out, after it was judged again in the present cluster; ``"false"`` calls it off,
and the same move is not proposed again while the record is kept. Any other value is no answer. Moves of a
bundle are proposed together, called off together, and carried out when all of them are approved.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from plimsoll.api.v1alpha1.eviction import EvictionSpec, Purpose
from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Beneficiary
from plimsoll.planning.moves import Move, workload_of
from plimsoll.planning.surges import Surge
from plimsoll.rebalancing.moves.endings import ANSWERS, APPROVED, REJECTED
from plimsoll.rebalancing.moves.events import (
    ApprovalWithdrawn,
    MoveApproved,
    MoveRejected,
    MoveUnplanned,
    RecordDeleted,
)
from plimsoll.rebalancing.moves.executor import MoveExecutor
from plimsoll.rebalancing.moves.feeder import MoveFeeder
from plimsoll.rebalancing.moves.state import MoveStage, MoveState
from plimsoll.rebalancing.records.store import EvictionRecordStore


class Approvals:
    """What people say of proposals; annotations become events.

    Args:
        executor: Takes the events.
    """

    def __init__(self, executor: MoveExecutor) -> None:
        self._executor = executor
        self._said: dict[str, bool] = {}

    def annotated(self, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        """A record was written by somebody, maybe with an answer."""
        key = f"{namespace}/{name}"
        answer = ANSWERS.get(annotations.get(APPROVED, ""))
        if answer is None:
            self._said.pop(key, None)
            self._executor.post(ApprovalWithdrawn(key))
        else:
            self._said[key] = answer
            self._executor.post(MoveApproved(key) if answer else MoveRejected(key))

    def forget(self, namespace: str, name: str) -> None:
        """A record is gone."""
        self._said.pop(f"{namespace}/{name}", None)
        self._executor.post(RecordDeleted(f"{namespace}/{name}"))

    def answer(self, key: str) -> bool | None:
        """What was said of a proposal, None when nothing was."""
        return self._said.get(key)


class Proposals:
    """Proposes the moves of plans.

    Args:
        executor: Knows the proposals that wait, and takes what the plan no longer holds.
        feeder: Takes new moves.
        keeper: The records.
    """

    def __init__(self, executor: MoveExecutor, feeder: MoveFeeder, keeper: EvictionRecordStore) -> None:
        self._executor = executor
        self._feeder = feeder
        self._keeper = keeper

    async def propose(self, moves: Iterable[Move], policy: str, retention: RecordRetention, run: str) -> int:
        """Write a record for each move that has none, and call off proposals that the plan no longer holds.

        Args:
            moves: Of the plan.
            policy: Whose plan it is.
            retention: How many records there may be.
            run: Tells this plan from others.

        Returns:
            How many moves found no room among the records.
        """
        planned: defaultdict[str, list[Move]] = defaultdict(list)
        for move in moves:
            planned[move.bundle or move.pod.uid].append(move)
        wanted = {frozenset(map(_identity_of, group)): group for group in planned.values()}
        known = set()
        for states in self._waiting(policy):
            identity = frozenset(_identity(state.spec) for state in states)
            if identity in wanted and _is_complete(states):
                known.add(identity)
            else:
                self._executor.post(MoveUnplanned(states[0].key))
        rejected = {
            _identity(record.spec)
            for record in self._keeper.of_policy(policy)
            if record.spec.mode is Mode.APPROVE and record.status.reason == REJECTED
        }
        dropped = 0
        for identity, group in wanted.items():
            if identity in known or identity & rejected:
                continue
            if not self._keeper.has_room(policy, retention, len(group)):
                dropped += len(group)
                continue
            await self._feeder.feed(group, policy, Mode.APPROVE, run)
        return dropped

    def _waiting(self, policy: str) -> list[list[MoveState]]:
        """Proposals of a policy that are not being carried out, those of a bundle together."""
        machine = self._executor.machine
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


def moves_of(
    specs: Sequence[EvictionSpec],
    find: Callable[[str], PodInfo | None],
    empties: Callable[[Move], bool],
) -> tuple[Move, ...] | None:
    """The moves that records propose, for the pods as they are; None when they would be for no pod.

    Args:
        specs: Of the records of a bundle, or of one that stands alone.
        find: A pod by uid, placed or not.
        empties: Whether a move empties its node together with others.
    """
    bundle = specs[0].bundle
    beneficiary = None
    if bundle is not None and bundle.beneficiary is not None:
        waiting = find(bundle.beneficiary.uid)
        others = [(find(each.pod.uid), each.node) for each in bundle.members]
        if waiting is None or any(pod is None for pod, _ in others):
            return None
        members = tuple(Beneficiary(pod, node) for pod, node in others if pod is not None)
        beneficiary = Beneficiary(waiting, bundle.node or "", members)
    moves: list[Move] = []
    for spec in specs:
        pod = find(spec.pod.uid)
        if pod is None:
            return None
        move = move_of(spec, pod, beneficiary)
        is_next = any(move.workload.uid == each.workload.uid for each in moves)
        moves.append(replace(move, waits=is_next and empties(move)))
    return tuple(moves)


def move_of(spec: EvictionSpec, pod: PodInfo, beneficiary: Beneficiary | None = None) -> Move:
    """The move that a record proposes, for the pod as it is now; to be judged again before it is made.

    Args:
        spec: Of the record.
        pod: The pod as it is now.
        beneficiary: Whom the bundle is for, as it is now.
    """
    given = spec.surge
    surge = None if given is None else Surge(given.deployment, given.uid, given.template, given.before)
    return Move(
        pod=pod,
        strategy=spec.strategy,
        reason=spec.reason,
        source=spec.from_node,
        target=spec.target_node or "",
        gain=spec.gain,
        ties=0,
        is_forecast=spec.forecast or Planner(spec.planner) is Planner.UPSTREAM,
        workload=workload_of(pod) if surge is None else surge.workload(pod.namespace),
        planner=Planner(spec.planner),
        is_directed=spec.directed,
        maximum=spec.gain_maximum,
        renews=spec.purpose is Purpose.RESTART,
        bundle=spec.bundle.name if spec.bundle else "",
        part=(spec.bundle.position, spec.bundle.moves) if spec.bundle else (1, 1),
        beneficiary=beneficiary,
        surge=surge,
    )


def _is_complete(group: Sequence[MoveState]) -> bool:
    """Whether these are all moves of their bundle, or one that stands alone."""
    bundle = group[0].spec.bundle
    return len(group) == (bundle.moves if bundle else 1)


def _identity(spec: EvictionSpec) -> tuple[str, str, str]:
    return (spec.pod.uid, spec.strategy, spec.target_node or "")


def _identity_of(move: Move) -> tuple[str, str, str]:
    return (move.pod.uid, move.strategy, move.target)
