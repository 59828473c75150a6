"""Reads Deployments, and starts and reverts the rollouts of surges, one attempt each.

A rollout is started by one PATCH: the mark in the annotations of the pod template, which names the record.
Retries are safe, as any process can read from the Deployment whether the rollout was started. The PATCH has
the resourceVersion that was read, so a concurrent change by others wins. The mark is reverted only while
nothing else in the template has changed.
"""

from collections.abc import Mapping, Sequence

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.framework import ClusterObjects
from plimsoll.model.kinds.deployment import Deployment, mark_of
from plimsoll.model.names import RecordKey
from plimsoll.planning.moves import Move
from plimsoll.planning.surges import Deployments, obstacle
from plimsoll.ports.objects import Rollouts
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.execution.executor import Awaited, Immediate
from plimsoll.rebalancing.moves.events import RolloutAnswered, RolloutSight
from plimsoll.rebalancing.moves.instructions import RevertRollout, StartRollout
from plimsoll.rebalancing.moves.recovery import RecoveryRule
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.surges import transitions
from plimsoll.rebalancing.surges.sightings import SurgeSightings
from plimsoll.timing.retry import OPEN_OR_CONFLICT

_FORBIDDEN = "spec.rebalancing.surge is on, and the operator may not {verb} Deployments: {said}"


class RolloutSurges:
    """Surges; see :class:`plimsoll.rebalancing.ways.SurgeWay`.

    Args:
        rollouts: Reads and marks Deployments.
        objects: The mirrored ReplicaSets.

    Attributes:
        trouble: The missing right, in a sentence; empty if none is known to be missing.
    """

    def __init__(self, rollouts: Rollouts, objects: ClusterObjects) -> None:
        self.trouble = ""
        self.table = transitions.TABLE
        self.recovered: RecoveryRule = transitions.recovered
        self.sightings: Sequence[Sightings] = (SurgeSightings(objects),)
        self.immediate: Mapping[type, Immediate] = {}
        self.awaited: Mapping[type, Awaited] = {StartRollout: self.start, RevertRollout: self.revert}
        self._rollouts = rollouts

    # -- reads of plans ------------------------------------------------------------------------------

    async def deployments(self) -> Deployments:
        """All Deployments, for one run."""
        answer, found = await self._rollouts.list()
        self._note_rights(answer, "list")
        if not answer.is_done:
            return Deployments(problem=f"the Deployments could not be read: {answer.message}")
        return Deployments({each.metadata.uid: each for each in found})

    async def present(self, move: Move) -> Deployments:
        """The present Deployment of a surge."""
        if move.surge is None:
            return Deployments()
        answer, found = await self._rollouts.read(move.pod.namespace, move.surge.deployment)
        self._note_rights(answer, "read")
        if found is not None:
            return Deployments({found.metadata.uid: found})
        gone = answer.verdict is WriteOutcome.GONE
        return Deployments(problem="" if gone else f"its Deployment could not be read: {answer.message}")

    # -- rollouts ------------------------------------------------------------------------------------

    async def inspect(self, key: RecordKey, spec: EvictionSpec) -> RolloutAnswered:
        """The state of a surge's Deployment."""
        return (await self._look(key, spec))[0]

    async def start(self, order: StartRollout) -> RolloutAnswered:
        """Mark the template if it is untouched."""
        key, spec = order.key, order.spec
        seen, found = await self._look(key, spec)
        if seen.sight is not RolloutSight.UNTOUCHED or found is None:
            return seen
        if obstacle(found):
            return RolloutAnswered(key, RolloutSight.CHANGED, seen.answer, seen.patience_s)
        mark = mark_of(key.partition("/")[2], spec.from_node)
        return await self._mark(seen, found, mark, RolloutSight.MARKED)

    async def revert(self, order: RevertRollout) -> RolloutAnswered:
        """Revert the mark if nothing else in the template has changed."""
        seen, found = await self._look(order.key, order.spec)
        surge = order.spec.surge
        if seen.sight is not RolloutSight.MARKED or found is None or surge is None:
            return seen
        return await self._mark(seen, found, surge.before, RolloutSight.UNTOUCHED)

    async def _mark(
        self, seen: RolloutAnswered, found: Deployment, mark: str | None, done: RolloutSight
    ) -> RolloutAnswered:
        answer = await self._rollouts.mark(found, mark)
        self._note_rights(answer, "patch")
        sight = done if answer.is_done else _sight_after(answer)
        return RolloutAnswered(seen.key, sight, answer, seen.patience_s)

    async def _look(self, key: RecordKey, spec: EvictionSpec) -> tuple[RolloutAnswered, Deployment | None]:
        surge = spec.surge
        if surge is None:
            return RolloutAnswered(key, RolloutSight.GONE, WriteResult(WriteOutcome.GONE)), None
        answer, found = await self._rollouts.read(key.partition("/")[0], surge.deployment)
        self._note_rights(answer, "read")
        if answer.verdict is WriteOutcome.GONE:
            return RolloutAnswered(key, RolloutSight.GONE, WriteResult(WriteOutcome.DONE)), None
        if found is None:
            return RolloutAnswered(key, _sight_after(answer), answer), None
        patience_s = found.spec.progress_deadline_seconds
        if found.metadata.uid != surge.uid:
            return RolloutAnswered(key, RolloutSight.GONE, answer), None
        sight = RolloutSight.CHANGED
        if found.template_digest() == surge.template:
            if found.surged == mark_of(key.partition("/")[2], spec.from_node):
                sight = RolloutSight.MARKED
            elif found.surged == surge.before:
                sight = RolloutSight.UNTOUCHED
        return RolloutAnswered(key, sight, answer, float(patience_s)), found

    def _note_rights(self, answer: WriteResult, verb: str) -> None:
        """Remember a missing right, until it is granted."""
        if answer.verdict is WriteOutcome.REFUSED:
            self.trouble = _FORBIDDEN.format(verb=verb, said=answer.message)
        elif answer.is_done and f"not {verb} " in self.trouble:
            self.trouble = ""


def _sight_after(answer: WriteResult) -> RolloutSight:
    """What is known about a Deployment after a failed call."""
    return RolloutSight.OPEN if answer.verdict in OPEN_OR_CONFLICT else RolloutSight.CHANGED
