"""Moves that wait for a person: records stay Planned until somebody says yes or no with an annotation.

``plimsoll.dev/approved`` on the Eviction record: ``"true"`` carries the move out, after it was asked again of
the present cluster; ``"false"`` calls it off, and the same move is not proposed again while the record is
kept. Any other value is no answer.
"""

from collections.abc import Iterable, Mapping

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.limits import RecordRetention
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.control.keeping import Record, RecordKeeper
from plimsoll.engine.moves import Move, workload_of
from plimsoll.framework import PodInfo
from plimsoll.framework.strategy_context import Planner

APPROVED = "plimsoll.dev/approved"
ANSWERS = {"true": True, "false": False}
REJECTED = "Rejected"


class Approvals:
    """Proposals, and what people say of them."""

    def __init__(self, keeper: RecordKeeper) -> None:
        self._keeper = keeper
        self._said: dict[str, bool] = {}

    def annotated(self, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        """A record was written by somebody, maybe with an answer."""
        answer = ANSWERS.get(annotations.get(APPROVED, ""))
        if answer is None:
            self._said.pop(f"{namespace}/{name}", None)
        else:
            self._said[f"{namespace}/{name}"] = answer

    def forget(self, namespace: str, name: str) -> None:
        """A record is gone."""
        self._said.pop(f"{namespace}/{name}", None)

    def waiting(self) -> list[Record]:
        """Proposals that have not been carried out or called off."""
        return [
            record
            for record in self._keeper.unfinished()
            if record.spec.mode is Mode.APPROVE and record.phase is Phase.PLANNED
        ]

    def answer(self, record: Record) -> bool | None:
        """What was said of a proposal, None when nothing was."""
        return self._said.get(record.key)

    async def propose(
        self, moves: Iterable[Move], policy: str, retention: RecordRetention, cycle: str
    ) -> int:
        """Write a record for each move that has none, and call off proposals that the plan no longer holds.

        Returns:
            How many moves found no room among the records.
        """
        planned = {_identity_of(move): move for move in moves}
        known = {
            _identity(record)
            for record in self._keeper.of_policy(policy)
            if record.spec.mode is Mode.APPROVE
            and (record.phase is Phase.PLANNED or record.status.reason == REJECTED)
        }
        for record in self.waiting():
            if record.spec.policy == policy and _identity(record) not in planned:
                await self._keeper.cancel(record, "NoLongerPlanned", "the latest run does not plan the move")
        dropped = 0
        for identity, move in planned.items():
            if identity in known:
                continue
            if self._keeper.has_room(policy, retention):
                await self._keeper.open(move, policy, Mode.APPROVE, cycle)
            else:
                dropped += 1
        return dropped


def move_of(record: Record, pod: PodInfo) -> Move:
    """The move that a record proposes, for the pod as it is now; to be asked again before it is made."""
    spec = record.spec
    return Move(
        pod=pod,
        strategy=spec.strategy,
        reason=spec.reason,
        source=spec.from_node,
        target=spec.target_node or "",
        gain=spec.gain,
        ties=0,
        is_forecast=False,
        workload=workload_of(pod),
        planner=Planner(spec.planner),
        is_directed=spec.directed,
    )


def _identity(record: Record) -> tuple[str, str, str]:
    return (record.spec.pod.uid, record.spec.strategy, record.spec.target_node or "")


def _identity_of(move: Move) -> tuple[str, str, str]:
    return (move.pod.uid, move.strategy, move.target)
