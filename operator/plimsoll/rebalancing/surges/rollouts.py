"""Reads Deployments, and starts and reverts the rollouts of surges, one attempt each.

A rollout is started by one PATCH: the mark in the annotations of the pod template, which names the record.
Retries are safe, as any process can read from the Deployment whether the rollout was started. The PATCH has
the resourceVersion that was read, so a concurrent change by others wins. The mark is reverted only while
nothing else in the template has changed. Of several replicas, one moves as
:mod:`plimsoll.rebalancing.surges.replicas` says.
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
from plimsoll.rebalancing.moves.instructions import LowerReplicas, RevertRollout, StartRollout
from plimsoll.rebalancing.moves.recovery import RecoveryRule
from plimsoll.rebalancing.moves.sightings import Sightings
from plimsoll.rebalancing.surges import replicas, transitions
from plimsoll.rebalancing.surges.sightings import SurgeSightings
from plimsoll.timing.retry import OPEN_OR_CONFLICT

_FORBIDDEN = "spec.rebalancing.surge is on, and the operator may not {verb} {kind}s: {said}"


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
        self.awaited: Mapping[type, Awaited] = {
            StartRollout: self.start,
            LowerReplicas: self.lower,
            RevertRollout: self.revert,
        }
        self._rollouts = rollouts

    # -- reads of plans ------------------------------------------------------------------------------

    async def deployments(self) -> Deployments:
        """All Deployments, and what else can be scaled, for one run."""
        answer, found = await self._rollouts.list()
        self._note_rights(answer, "list")
        if not answer.is_done:
            return Deployments(problem=f"the Deployments could not be read: {answer.message}")
        others, unread = await self._rollouts.others()
        known = {each.metadata.uid: each for each in (*found, *others)}
        return Deployments(known, autoscaled=await self._autoscaled(), unread=unread)

    async def present(self, move: Move) -> Deployments:
        """The present Deployment of a surge."""
        if move.surge is None:
            return Deployments()
        answer, found = await self._rollouts.read(move.pod.namespace, move.surge.deployment, move.surge.kind)
        self._note_rights(answer, "read", move.surge.kind)
        if found is not None:
            scaled = None if move.surge.replicas is None else await self._autoscaled(move.pod.namespace)
            return Deployments({found.metadata.uid: found}, autoscaled=scaled)
        gone = answer.verdict is WriteOutcome.GONE
        return Deployments(problem="" if gone else f"its Deployment could not be read: {answer.message}")

    async def _autoscaled(self, namespace: str = "") -> Mapping[str, str] | None:
        answer, found = await self._rollouts.autoscaled(namespace)
        return found if answer.is_done else None

    # -- rollouts ------------------------------------------------------------------------------------

    async def inspect(self, key: RecordKey, spec: EvictionSpec) -> RolloutAnswered:
        """The state of a surge's Deployment."""
        return (await self._look(key, spec))[0]

    async def start(self, order: StartRollout) -> RolloutAnswered:
        """Mark the template if it is untouched, or raise the replicas."""
        key, spec = order.key, order.spec
        seen, found = await self._look(key, spec)
        if found is not None and spec.is_by_replicas:
            return self._noted(await replicas.raised(self._rollouts, seen, found), found.kind)
        if seen.sight is not RolloutSight.UNTOUCHED or found is None:
            return seen
        if obstacle(found):
            return RolloutAnswered(key, RolloutSight.CHANGED, seen.answer, seen.patience_s)
        mark = mark_of(key.partition("/")[2], spec.from_node)
        return await self._mark(seen, found, mark, RolloutSight.MARKED)

    async def lower(self, order: LowerReplicas) -> RolloutAnswered:
        """Take the replica more away again."""
        seen, found = await self._look(order.key, order.spec)
        if found is None:
            return seen
        return self._noted(await replicas.lowered(self._rollouts, seen, found, order.spec), found.kind)

    async def revert(self, order: RevertRollout) -> RolloutAnswered:
        """Revert the mark if nothing else in the template has changed."""
        seen, found = await self._look(order.key, order.spec)
        surge = order.spec.surge
        if surge is not None and order.spec.is_by_replicas:
            back = await replicas.taken_back(self._rollouts, seen, found, order.spec)
            return self._noted(back, surge.kind)
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
        answer, found = await self._rollouts.read(key.partition("/")[0], surge.deployment, surge.kind)
        self._note_rights(answer, "read", surge.kind)
        if answer.verdict is WriteOutcome.GONE:
            return RolloutAnswered(key, RolloutSight.GONE, WriteResult(WriteOutcome.DONE)), None
        if found is None:
            return RolloutAnswered(key, _sight_after(answer), answer), None
        patience_s = found.spec.progress_deadline_seconds
        if found.metadata.uid != surge.uid:
            return RolloutAnswered(key, RolloutSight.GONE, answer), None
        sight = RolloutSight.CHANGED
        if spec.is_by_replicas:
            sight = replicas.sight_of(key, spec, found)
        elif found.template_digest() == surge.template:
            if found.surged == mark_of(key.partition("/")[2], spec.from_node):
                sight = RolloutSight.MARKED
            elif found.surged == surge.before:
                sight = RolloutSight.UNTOUCHED
        return RolloutAnswered(key, sight, answer, float(patience_s)), found

    def _noted(self, seen: RolloutAnswered, kind: str) -> RolloutAnswered:
        self._note_rights(seen.answer, "scale", kind)
        return seen

    def _note_rights(self, answer: WriteResult, verb: str, kind: str = "Deployment") -> None:
        """Remember a missing right, until it is granted."""
        if answer.verdict is WriteOutcome.REFUSED:
            self.trouble = _FORBIDDEN.format(verb=verb, kind=kind, said=answer.message)
        elif answer.is_done and f"not {verb} {kind}s" in self.trouble:
            self.trouble = ""


def _sight_after(answer: WriteResult) -> RolloutSight:
    """What is known about a Deployment after a failed call."""
    return RolloutSight.OPEN if answer.verdict in OPEN_OR_CONFLICT else RolloutSight.CHANGED
