"""Sending one eviction: on record, target held, asked until answered, told where people look.

Nothing is sent that is not on record, and no outcome overtakes the record: a replacement may be seen
before the answer to the eviction is, so what is learnt meanwhile waits until the answer is written.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.cluster.cache import Cache
from plimsoll.framework import Pod
from plimsoll.planning.moves import Move
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.pods import PodEviction, pod_reference
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.holding import Holds
from plimsoll.rebalancing.moves.verifying import Outcome, Verification
from plimsoll.rebalancing.records.record import Record
from plimsoll.rebalancing.records.store import RecordKeeper

REPORTER = "plimsoll"

#: Seconds before an eviction is asked for again that got no usable answer.
ASK_AGAIN_S = (0.5, 2.0, 5.0)


class Sender(Protocol):
    """Carries moves out."""

    async def send(self, record: Record, move: Move) -> WriteResult | None:
        """Ask for one pod to leave; the server's answer, None when it was not asked."""

    def is_asked(self, pod: str) -> bool:
        """Whether this pod (by uid) has been asked to leave, and is still there."""


class MoveSender:
    """Carries moves out, one eviction at a time each.

    Args:
        passed_on: Takes the outcome of a move once its record may be completed.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        keeper: RecordKeeper,
        verification: Verification,
        holds: Holds,
        evictor: PodEviction,
        recorder: EventRecorder,
        clock: Clock,
        passed_on: Callable[[Outcome], None],
    ) -> None:
        self._cache = cache
        self._keeper = keeper
        self._verification = verification
        self._holds = holds
        self._evictor = evictor
        self._recorder = recorder
        self._clock = clock
        self._passed_on = passed_on
        self._sending: dict[str, list[Outcome]] = {}

    def learnt(self, outcome: Outcome) -> None:
        """A move has ended: its target is free; told further once the answer is on record."""
        self._holds.release(outcome.record)
        if outcome.replacement is not None:
            self._holds.arrived(outcome.replacement.uid)
        waiting = self._sending.get(outcome.record.key)
        if waiting is not None:
            waiting.append(outcome)
        else:
            self._passed_on(outcome)

    async def send(self, record: Record, move: Move) -> WriteResult | None:
        """Send one eviction; the server's answer, None when nothing was sent."""
        begun = await self.begin(record, move, "Sent")
        if begun is None:
            return None
        try:
            answer = await ask(self._evictor, move.pod.pod, self._cache, self._clock)
            if answer.is_done:
                await self.leaves(begun, move, "Accepted")
            else:
                self.stays(begun)
                await refused(self._keeper, begun, answer)
            return answer
        finally:
            self.finish(begun)

    async def begin(
        self, record: Record, move: Move, reason: str, message: str = "", *, waits: bool = False
    ) -> Record | None:
        """Put on record that a pod is about to be asked to leave, and keep its replacement's room.

        What becomes of it is to be told by ``leaves`` or ``stays``, and then ``finish``.

        Args:
            record: Of the move.
            move: What is made.
            reason: Why it is in its phase, in one word.
            message: The same in a sentence.
            waits: Whether the pod may take its time to leave.

        Returns:
            The record, None when it could not be written: nothing may be sent then.
        """
        self._holds.begin(record, move)
        begun = None
        try:
            begun = await self._keeper.begin(record, Phase.EVICTING, reason=reason, message=message)
        finally:
            self._holds.begun(record, is_recorded=begun is not None)
        if begun is not None:
            self.resume(begun, move, waits=waits)
        return begun

    def resume(
        self, record: Record, move: Move, *, before: datetime | None = None, waits: bool = False
    ) -> None:
        """Keep the replacement's room and look out for it; ``before``: pods of that time replace nobody."""
        pod = move.pod.pod
        owner = pod.metadata.controller
        self._sending[record.key] = []
        self._holds.hold(record, move)
        known = self._verification.siblings(owner.uid, before) if owner else frozenset[str]()
        now = self._clock.monotonic()
        self._verification.expect(record, known, now, is_replaced=not pod.is_terminal, waits=waits)

    async def leaves(self, record: Record, move: Move, reason: str, message: str = "") -> None:
        """The pod is on its way out: its replacement is due."""
        await self._keeper.advance(record, Phase.EVICTED, reason=reason, message=message)
        self._verification.due(record, self._clock.monotonic())
        self._note(move.pod.pod, record, move)

    def stays(self, record: Record) -> None:
        """The pod does not leave: nothing replaces it, and its room is anybody's again."""
        self._verification.withdraw(record)
        self._holds.release(record)
        self._sending[record.key].clear()

    def finish(self, record: Record) -> None:
        """The record says what became of the eviction: what was learnt meanwhile may follow."""
        for outcome in self._sending.pop(record.key, ()):
            self._passed_on(outcome)

    def _note(self, pod: Pod, record: Record, move: Move) -> None:
        """Events on the pod and on its owner: the story where people look for it."""
        target = f", expected on {move.target}" if move.target else ""
        text = f"{move.strategy}: {move.reason}; evicted from {move.source}{target} (record {record.name})"
        self._recorder.record(EventNote(pod_reference(pod), "Evicted", "Evicting", text, reporter=REPORTER))
        owner = pod.metadata.controller
        if owner is not None:
            reference: dict[str, str] = {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "namespace": pod.namespace,
                "name": owner.name,
                "uid": owner.uid,
            }
            self._recorder.record(
                EventNote(reference, "PodEvicted", "Evicting", f"pod {pod.name}: {text}", reporter=REPORTER)
            )


async def ask(evictor: PodEviction, pod: Pod, cache: Cache, clock: Clock) -> WriteResult:
    """Ask the Eviction API; again while no answer tells whether the pod goes. Never raises.

    The uid makes that safe: this pod goes at most once, and a later one of its name never. A pod that has
    left counts as evicted by us as soon as one answer was lost: nobody can tell whose request it was, and a
    move that happened must not be missing from the records and the limits.
    """
    stood = cache.cluster.pods.get(pod.uid)
    may_tell = stood is not None and not stood.is_terminating
    was_lost = False
    try:
        answer = await evictor.evict(pod)
        for pause_s in ASK_AGAIN_S:
            was_lost |= answer.verdict is WriteOutcome.UNKNOWN
            if answer.verdict not in (WriteOutcome.UNKNOWN, WriteOutcome.BUSY):
                break
            await clock.sleep(max(pause_s, answer.retry_after_s))
            if may_tell and _has_left(pod, cache):
                return _left(was_lost=was_lost)
            answer = await evictor.evict(pod)
    except Exception as exc:  # noqa: BLE001 - whatever broke, the record is carried to its end
        return WriteResult(WriteOutcome.UNKNOWN, f"asking for the eviction broke: {exc!r}")
    if was_lost and answer.verdict in (WriteOutcome.GONE, WriteOutcome.CONFLICT):
        return _left(was_lost=True)
    if answer.verdict is WriteOutcome.UNKNOWN and may_tell and _has_left(pod, cache):
        return _left(was_lost=True)
    return answer


def _has_left(pod: Pod, cache: Cache) -> bool:
    """Whether the watch has shown that the pod goes, or is gone."""
    present = cache.cluster.pods.get(pod.uid)
    return present is None or present.is_terminating


def _left(*, was_lost: bool) -> WriteResult:
    """What a pod that has left means for its eviction."""
    if was_lost:
        return WriteResult(WriteOutcome.DONE)
    return WriteResult(WriteOutcome.GONE, "it left before it was evicted")


async def refused(keeper: RecordKeeper, record: Record, answer: WriteResult) -> None:
    """Say on record why a pod was not evicted."""
    match answer.verdict:
        case WriteOutcome.BLOCKED:
            await keeper.advance(
                record,
                Phase.BLOCKED,
                reason="PodDisruptionBudget",
                message=answer.message,
                blocked_by=answer.budget.partition("/")[2] or None,
            )
        case WriteOutcome.GONE | WriteOutcome.CONFLICT:
            await keeper.cancel(record, "Gone", f"the pod is gone, or another one by now: {answer.message}")
        case WriteOutcome.REFUSED:
            await keeper.advance(record, Phase.FAILED, reason="EvictionRefused", message=answer.message)
        case _:
            await keeper.advance(record, Phase.FAILED, reason="EvictionFailed", message=answer.message)
