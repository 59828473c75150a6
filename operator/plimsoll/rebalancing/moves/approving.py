"""Moves that wait for a person: records stay Planned until somebody says yes or no with an annotation.

``plimsoll.dev/approved`` on the Eviction record: ``"true"`` carries the move out, after it was asked again of
the present cluster; ``"false"`` calls it off, and the same move is not proposed again while the record is
kept. Any other value is no answer. Moves of a bundle are proposed together, called off together, and carried
out when all of them are approved.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from plimsoll.api.v1alpha1.eviction import Purpose
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Beneficiary
from plimsoll.planning.moves import Move, workload_of
from plimsoll.planning.surges import Surge
from plimsoll.rebalancing.records.record import Record
from plimsoll.rebalancing.records.store import RecordKeeper

APPROVED = "plimsoll.dev/approved"
ANSWERS = {"true": True, "false": False}
REJECTED = "Rejected"


class Approvals:
    """Proposals, and what people say of them."""

    def __init__(self, keeper: RecordKeeper) -> None:
        self._keeper = keeper
        self._said: dict[str, bool] = {}
        self._heard: set[str] = set()
        self._being_proposed: set[str] = set()  #: bundles of which not all records are written yet

    def annotated(self, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        """A record was written by somebody, maybe with an answer."""
        self._heard.add(f"{namespace}/{name}")
        answer = ANSWERS.get(annotations.get(APPROVED, ""))
        if answer is None:
            self._said.pop(f"{namespace}/{name}", None)
        else:
            self._said[f"{namespace}/{name}"] = answer

    def forget(self, namespace: str, name: str) -> None:
        """A record is gone."""
        self._said.pop(f"{namespace}/{name}", None)
        self._heard.discard(f"{namespace}/{name}")

    def is_taken_back(self, record: Record) -> bool:
        """Whether a move that was approved is so no longer; false as long as nothing was heard of it."""
        return record.spec.mode is Mode.APPROVE and record.key in self._heard and not self.answer(record)

    def waiting(self) -> list[Record]:
        """Proposals that have not been carried out or called off."""
        return [
            record
            for record in self._keeper.unfinished()
            if record.spec.mode is Mode.APPROVE and record.phase is Phase.PLANNED
        ]

    def groups(self) -> list[list[Record]]:
        """The same, those of a bundle together in the order of their moves, once all are on record."""
        found: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
        for record in self.waiting():
            bundle = record.spec.bundle
            if bundle is not None and bundle.name in self._being_proposed:
                continue
            found[record.spec.policy, bundle.name if bundle else record.key].append(record)
        return [sorted(group, key=_position) for group in found.values()]

    def answer(self, record: Record) -> bool | None:
        """What was said of a proposal, None when nothing was."""
        return self._said.get(record.key)

    async def propose(
        self,
        moves: Iterable[Move],
        policy: str,
        retention: RecordRetention,
        cycle: str,
        under_way: Collection[str] = (),
    ) -> int:
        """Write a record for each move that has none, and call off proposals that the plan no longer holds.

        Args:
            moves: Of the plan.
            policy: Whose plan it is.
            retention: How many records there may be.
            cycle: Tells this plan from others.
            under_way: Keys of proposals that are being carried out.

        Returns:
            How many moves found no room among the records.
        """
        planned: defaultdict[str, list[Move]] = defaultdict(list)
        for move in moves:
            planned[move.bundle or move.pod.uid].append(move)
        wanted = {frozenset(map(_identity_of, group)): group for group in planned.values()}
        known = set()
        for records in self.groups():
            identity = frozenset(map(_identity, records))
            if records[0].spec.policy != policy or any(record.key in under_way for record in records):
                continue
            if identity in wanted and is_complete(records):
                known.add(identity)
                continue
            for record in records:
                await self._keeper.cancel(record, "NoLongerPlanned", "the latest run does not plan the move")
        rejected = {
            _identity(record)
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
            # Whoever looks between two of the writes must not take the bundle for one that has lost a move.
            self._being_proposed = {move.bundle for move in group}
            try:
                for move in group:
                    await self._keeper.open(move, policy, Mode.APPROVE, cycle)
            finally:
                self._being_proposed = set()
        return dropped


def is_complete(records: Sequence[Record]) -> bool:
    """Whether these are all moves of their bundle, or one that stands alone."""
    bundle = records[0].spec.bundle
    return len(records) == (bundle.moves if bundle else 1)


def move_of(record: Record, pod: PodInfo, beneficiary: Beneficiary | None = None) -> Move:
    """The move that a record proposes, for the pod as it is now; to be asked again before it is made.

    Args:
        record: The proposal.
        pod: The pod as it is now.
        beneficiary: Whom the bundle is for, as it is now.
    """
    spec = record.spec
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
        is_forecast=record.is_forecast,
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


def _position(record: Record) -> tuple[int, str]:
    return (record.spec.bundle.position if record.spec.bundle else 0, record.key)


def _identity(record: Record) -> tuple[str, str, str]:
    return (record.spec.pod.uid, record.spec.strategy, record.spec.target_node or "")


def _identity_of(move: Move) -> tuple[str, str, str]:
    return (move.pod.uid, move.strategy, move.target)
