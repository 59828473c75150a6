"""Moves one of several replicas of a Deployment: one replica more, then one less, one attempt each.

The field manager of ``spec.replicas`` is the mark: it names the record, and the API server writes it together
with the number. So any process can tell whether the number was raised, whether it was lowered again, and
whether somebody else has chosen another one since, which is then left alone.

The ReplicaSet deletes unready pods first, and then those with the least ``pod-deletion-cost``. So the number
is lowered when all pods are ready, and the pod that is to leave has the least cost from just before until it
is gone, or the surge is taken back.

Source: Kubernetes v1.36, ``pkg/controller/controller_utils.go`` (``ActivePodsWithRanks``).
"""

from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.model.kinds.deployment import Deployment, surger_of
from plimsoll.model.names import RecordKey
from plimsoll.planning.surges import obstacle_of_several
from plimsoll.ports.objects import Rollouts
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.events import RolloutAnswered, RolloutSight
from plimsoll.timing.retry import OPEN_OR_CONFLICT


def sight_of(key: RecordKey, spec: EvictionSpec, found: Deployment) -> RolloutSight:
    """How far the surge of a record has come, as its Deployment says."""
    before, now = spec.surge.replicas if spec.surge else None, found.spec.replicas
    if before is None:
        return RolloutSight.CHANGED
    if not found.is_scaled_by(surger_of(key)):
        return RolloutSight.UNTOUCHED if now == before else RolloutSight.CHANGED
    return {before + 1: RolloutSight.MARKED, before: RolloutSight.LOWERED}.get(now, RolloutSight.CHANGED)


async def raised(rollouts: Rollouts, seen: RolloutAnswered, found: Deployment) -> RolloutAnswered:
    """One replica more, if no other client has changed the Deployment."""
    if seen.sight is not RolloutSight.UNTOUCHED:
        return seen
    if obstacle_of_several(found, {}):
        return RolloutAnswered(seen.key, RolloutSight.CHANGED, seen.answer, seen.patience_s)
    answer = await rollouts.scale(found, found.spec.replicas + 1, surger_of(seen.key))
    return _answered(seen, answer, RolloutSight.MARKED)


async def lowered(
    rollouts: Rollouts, seen: RolloutAnswered, found: Deployment, spec: EvictionSpec
) -> RolloutAnswered:
    """One replica less, as soon as all are ready; LOWERED when its rollout has ended."""
    status, wanted = found.status, found.spec.replicas
    if seen.sight is RolloutSight.LOWERED:
        return seen if found.is_settled else _later(seen)
    if seen.sight is not RolloutSight.MARKED:
        return seen
    if status.observed_generation < found.metadata.generation or status.available_replicas < wanted:
        return _later(seen)
    said = await rollouts.prefer(spec.pod.namespace, spec.pod.name, spec.pod.uid, leaves=True)
    if not said.is_done and said.verdict is not WriteOutcome.GONE:
        return _answered(seen, said, seen.sight, is_shared=False)
    return _later(seen, await rollouts.scale(found, wanted - 1, surger_of(seen.key)))


async def taken_back(
    rollouts: Rollouts, seen: RolloutAnswered, found: Deployment | None, spec: EvictionSpec
) -> RolloutAnswered:
    """The pod's cost and the number as they were; not a number that somebody else has chosen."""
    said = await rollouts.prefer(spec.pod.namespace, spec.pod.name, spec.pod.uid, leaves=False)
    if said.verdict in OPEN_OR_CONFLICT - {WriteOutcome.CONFLICT}:
        return _later(seen, said)
    if seen.sight is RolloutSight.LOWERED:
        return RolloutAnswered(seen.key, RolloutSight.UNTOUCHED, seen.answer, seen.patience_s)
    if seen.sight is not RolloutSight.MARKED or found is None:
        return seen
    answer = await rollouts.scale(found, found.spec.replicas - 1, surger_of(seen.key))
    return _answered(seen, answer, RolloutSight.UNTOUCHED)


def _answered(
    seen: RolloutAnswered, answer: WriteResult, done: RolloutSight, *, is_shared: bool = True
) -> RolloutAnswered:
    """What a write has come to; a conflict about what is ours alone is somebody else's decision."""
    is_open = answer.verdict in OPEN_OR_CONFLICT and (
        is_shared or answer.verdict is not WriteOutcome.CONFLICT
    )
    sight = done if answer.is_done else RolloutSight.OPEN if is_open else RolloutSight.CHANGED
    return RolloutAnswered(seen.key, sight, answer, seen.patience_s)


def _later(seen: RolloutAnswered, answer: WriteResult | None = None) -> RolloutAnswered:
    """The Deployment has not come so far; refused writes are final."""
    if answer is not None and not answer.is_done and answer.verdict not in OPEN_OR_CONFLICT:
        return RolloutAnswered(seen.key, RolloutSight.CHANGED, answer, seen.patience_s)
    return RolloutAnswered(seen.key, RolloutSight.OPEN, seen.answer, seen.patience_s)
