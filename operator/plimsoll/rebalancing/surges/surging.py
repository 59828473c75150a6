"""Surges: a pod is moved by a rollout of its Deployment, which brings the replacement up first.

A surge is on record before anything is written, and starts with one PATCH: the mark in the annotations of
the pod template, which names the record. That makes the rest safe to repeat: whether the rollout was
started is read off the Deployment, by this process or the next. The PATCH carries the version that was
read, so whoever changes the Deployment at the same time wins, and the surge is called off.

When the replacement is not ready in time the mark becomes what it was, which makes the controller drop the
new pod and keep the old one; unless somebody has changed the template since, for then it is theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.cluster.cache import Cache
from plimsoll.model.kinds.deployment import Deployment, mark_of
from plimsoll.planning.moves import Move
from plimsoll.planning.surges import Deployments, obstacle
from plimsoll.ports.clock import Clock
from plimsoll.ports.deployments import Rollouts
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.pods import pod_reference
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.holding import Holds
from plimsoll.rebalancing.moves.verifying import Outcome
from plimsoll.rebalancing.records.record import Record
from plimsoll.rebalancing.records.store import RecordKeeper
from plimsoll.rebalancing.surges.following import Following

#: Seconds before a Deployment is looked at again that could not be read or written, or had just changed.
LOOK_AGAIN_S = (0.2, 1.0, 4.0)

#: The reason of a record whose rollout is being taken back; the next process goes on with that.
TAKING_BACK = "TakingBack"

_FORBIDDEN = "spec.rebalancing.surge is on, and the operator may not {verb} Deployments: {said}"


class _State(Enum):
    """What a Deployment says of a surge."""

    UNTOUCHED = "its rollout has not been started, or has been taken back"
    MARKED = "its rollout was started, and nothing else has changed"
    CHANGED = "somebody changed the Deployment"
    GONE = "the Deployment is gone"


@dataclass(frozen=True, slots=True)
class _Sight:
    """One look at a Deployment: what it says, unless the answer says why nobody knows."""

    answer: WriteResult
    state: _State = _State.GONE
    deployment: Deployment | None = None


class Surges:
    """Carries surges out, and takes them back.

    Args:
        cache: The cluster.
        keeper: The records.
        holds: Keeps the targets.
        rollouts: Reads and marks Deployments.
        recorder: Tells of surges where people look.
        clock: Time.
        ended: Takes the outcome of a surge.

    Attributes:
        following: The surges under way.
        trouble: What right is missing, in a sentence; empty when none is known to be.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        keeper: RecordKeeper,
        holds: Holds,
        rollouts: Rollouts,
        recorder: EventRecorder,
        clock: Clock,
        ended: Callable[[Outcome], None],
    ) -> None:
        self.following = Following(cache.cluster.objects, ended, holds.hand_over, clock.monotonic)
        self.trouble = ""
        self._cache = cache
        self._keeper = keeper
        self._holds = holds
        self._rollouts = rollouts
        self._recorder = recorder
        self._clock = clock
        self._ended = ended

    # -- what a plan asks ----------------------------------------------------------------------------

    async def deployments(self) -> Deployments:
        """All Deployments, for one run."""
        answer, found = await self._rollouts.list()
        self._note_rights(answer, "list")
        if not answer.is_done:
            return Deployments(problem=f"the Deployments could not be read: {answer.message}")
        return Deployments({each.metadata.uid: each for each in found})

    async def present(self, move: Move) -> Deployments:
        """The Deployment of a surge as it is now; nothing for other moves."""
        if move.surge is None:
            return Deployments()
        answer, found = await self._rollouts.read(move.pod.namespace, move.surge.deployment)
        self._note_rights(answer, "read")
        if found is not None:
            return Deployments({found.metadata.uid: found})
        gone = answer.verdict is WriteOutcome.GONE
        return Deployments(problem="" if gone else f"its Deployment could not be read: {answer.message}")

    # -- doing ---------------------------------------------------------------------------------------

    async def send(self, record: Record, move: Move) -> bool:
        """Start a surge; whether it may have been started."""
        surge = record.spec.surge
        if surge is None:
            return False
        expected = f"Deployment {surge.deployment} brings the replacement up first, on {move.target}"
        self._holds.begin(record, move)
        begun = None
        try:
            begun = await self._keeper.begin(record, Phase.SURGING, reason="Sent", message=expected)
        finally:
            self._holds.begun(record, is_recorded=begun is not None)
        if begun is None:
            return False
        record = begun
        self._holds.hold(record, move)
        self.following.expect(record, stands=True)
        sight = await self._start(record)
        if sight.answer.is_done and sight.state is _State.MARKED:
            self._note(record, move)
            return True
        if sight.answer.verdict in (WriteOutcome.UNKNOWN, WriteOutcome.BUSY):
            return True  # it may have been: the time of the replacement runs, and then it is taken back
        self.following.withdraw(record)
        self._holds.release(record)
        if sight.answer.is_done or sight.answer.verdict is WriteOutcome.CONFLICT:
            await self._keeper.cancel(record, sight.state.name.capitalize(), sight.state.value)
        elif sight.answer.verdict is not WriteOutcome.FENCED:  # the next leader finds it, and nothing started
            await self._keeper.advance(
                record, Phase.FAILED, reason="SurgeRefused", message=sight.answer.message
            )
        return False

    async def look_after(self) -> None:
        """Take back what was not ready in time."""
        for record, why in self.following.overdue():
            await self._take_back(record, why)

    async def recover(self, record: Record) -> None:
        """Go on with a surge that an earlier process was in the middle of."""
        stands = record.spec.pod.uid in self._cache.cluster.pods
        if record.status.reason == TAKING_BACK:
            self.following.expect(record, stands=stands, patience_s=0.0)
            return
        sight = await self._look(record)
        if sight.answer.is_done and sight.state is _State.UNTOUCHED and stands:
            message = "the operator ended before the rollout was started"
            await self._keeper.cancel(record, "Restarted", message)
            return
        self.following.expect(record, stands=stands)
        if sight.deployment is not None:
            self.following.hasten(record, sight.deployment.spec.progress_deadline_seconds)

    # ------------------------------------------------------------------------------------------------

    async def _look(self, record: Record) -> _Sight:
        """What the Deployment says of the surge."""
        surge = record.spec.surge
        if surge is None:
            return _Sight(WriteResult(WriteOutcome.GONE))
        answer, found = await self._rollouts.read(record.namespace, surge.deployment)
        self._note_rights(answer, "read")
        if answer.verdict is WriteOutcome.GONE:
            return _Sight(WriteResult(WriteOutcome.DONE))
        if found is None:
            return _Sight(answer)
        if found.metadata.uid != surge.uid:
            return _Sight(answer)
        is_same = found.template_digest() == surge.template
        if is_same and found.surged == mark_of(record.name, record.spec.from_node):
            return _Sight(answer, _State.MARKED, found)
        if is_same and found.surged == surge.before:
            return _Sight(answer, _State.UNTOUCHED, found)
        return _Sight(answer, _State.CHANGED, found)

    async def _start(self, record: Record) -> _Sight:
        """Mark the template, once; a look after each attempt tells whether it happened."""
        mark = mark_of(record.name, record.spec.from_node)
        for pause_s in (*LOOK_AGAIN_S, None):
            sight = await self._look(record)
            found = sight.deployment
            if found is not None:
                self.following.hasten(record, found.spec.progress_deadline_seconds)
            if sight.state is _State.UNTOUCHED and found is not None:
                if obstacle(found):
                    return _Sight(sight.answer, _State.CHANGED)
                answer = await self._rollouts.mark(found, mark)
                self._note_rights(answer, "patch")
                sight = _Sight(answer, _State.MARKED if answer.is_done else _State.CHANGED)
            if not _is_open(sight.answer) or pause_s is None:
                return sight
            await self._clock.sleep(max(pause_s, sight.answer.retry_after_s))
        return sight

    async def _take_back(self, record: Record, why: str) -> None:
        """Make the mark what it was, unless the template is somebody else's by now."""
        before = record.spec.surge.before if record.spec.surge else None
        known = self._keeper.known.get(record.key, record)
        if known.status.reason != TAKING_BACK:
            await self._keeper.advance(record, Phase.SURGING, reason=TAKING_BACK, message=why)
        sight = await self._look(record)
        if sight.state is _State.MARKED and sight.deployment is not None:
            answer = await self._rollouts.mark(sight.deployment, before)
            self._note_rights(answer, "patch")
            sight = _Sight(answer, _State.UNTOUCHED)
        if _is_open(sight.answer) or sight.answer.verdict is WriteOutcome.FENCED:
            self.following.resume(record)  # the next look goes on with it
            return
        name = record.spec.pod.name
        if not sight.answer.is_done:
            end = f"the rollout could not be taken back: {sight.answer.message}"
        elif sight.state is _State.UNTOUCHED:
            end = f"the rollout was taken back, pod {name} stays"
        else:
            end = f"{sight.state.value} since, so the rollout was left alone"
        landed = self.following.replacement_of(record)
        self.following.withdraw(record)
        reason = "NoReplacement" if landed is None else "ReplacementNotReady"
        self._ended(Outcome(record, Phase.FAILED, reason, f"{why}; {end}", landed))

    def _note_rights(self, answer: WriteResult, verb: str) -> None:
        """Keep in mind what we may not do, until we may."""
        if answer.verdict is WriteOutcome.REFUSED:
            self.trouble = _FORBIDDEN.format(verb=verb, said=answer.message)
        elif answer.is_done and f"not {verb} " in self.trouble:
            self.trouble = ""

    def _note(self, record: Record, move: Move) -> None:
        """Events on the pod and its Deployment: the story where people look for it."""
        surge, pod = record.spec.surge, move.pod.pod
        if surge is None:
            return
        text = (
            f"{move.strategy}: {move.reason}; to leave {move.source} when its replacement is ready, expected"
            f" on {move.target} (record {record.name})"
        )
        self._recorder.record(EventNote(pod_reference(pod), "Surging", "Surging", text))
        reference = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": pod.namespace,
            "name": surge.deployment,
            "uid": surge.uid,
        }
        self._recorder.record(EventNote(reference, "PodSurging", "Surging", f"pod {pod.name}: {text}"))


def _is_open(answer: WriteResult) -> bool:
    """Whether another look may tell more."""
    return answer.verdict in (WriteOutcome.UNKNOWN, WriteOutcome.BUSY, WriteOutcome.CONFLICT)
