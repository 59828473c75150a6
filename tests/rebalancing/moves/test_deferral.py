"""Evictions that another component carries out in its own time: one request, one record, the right end."""

from math import inf
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves import deferral, events
from plimsoll.rebalancing.moves.instructions import Evict
from plimsoll.rebalancing.moves.outcomes import PATIENCE_S
from plimsoll.rebalancing.moves.state import MoveStage, TimerName
from rebalancing.moves.moved import a_sibling
from rebalancing.moves.moves_world import DONE, a_move, facts_of
from rebalancing.moves.test_replacements import Watched

HANDED_OVER = WriteResult(WriteOutcome.DEFERRED, "Eviction triggered evacuation of VMI")
BUSY = WriteResult(WriteOutcome.BUSY, "too many requests")


class Migration(Watched):
    """A virtual machine on node bad, whose eviction was answered."""

    def __init__(self, answer: WriteResult = HANDED_OVER, timeout_s: float = inf) -> None:
        super().__init__(a_sibling("web-1", "bad"))
        self.key = self.evicted(answer=answer, timeout_s=timeout_s)

    @property
    def pod(self) -> str:
        return a_move().pod.uid

    @property
    def end(self) -> tuple[str, str]:
        """The latest phase and reason of the record."""
        state = self.state(self.key)
        assert state is not None
        return str(state.phase), state.reason

    @property
    def requests(self) -> int:
        return sum(isinstance(each, Evict) for each in self.ordered)

    def mark(self, *, present: bool = True) -> None:
        """The annotation appears, or is removed."""
        self.world.pods[self.pod] = replace(facts_of(a_move()), in_progress=present)
        self.tell(events.EvictionMarked(self.key, present))

    def target(self, name: str, *, ready: bool) -> None:
        """A pod of the owner on the other node, as it is from now on."""
        before, now = a_sibling(name, "good", ready=False), a_sibling(name, "good", ready=ready)
        is_new = before.uid not in self.sightings.siblings(before.metadata.owner_references[0].uid)
        self.watch(PodAdded(now) if is_new else PodUpdated(before, now))
        self.world.pods[now.uid] = replace(
            facts_of(a_move()), uid=now.uid, name=name, node="good", ready=ready
        )

    def source_ends(self) -> None:
        """The source has Succeeded."""
        self.tell(events.PodGone(self.key, deleted=False))

    def pass_time(self, seconds: float) -> None:
        """Deadlines pass in order."""
        until = self.now + seconds
        while True:
            state = self.state(self.key)
            due = sorted((at, timer) for timer, at in state.timers.items() if at <= until) if state else []
            if not due:
                break
            self.now, timer = due[0]
            self.tell(events.TimedOut(self.key, timer))
        self.now = until


@pytest.mark.parametrize("seconds", [5.0, 600.0, 3000.0])
def test_a_migration_is_one_request_and_one_record_however_long_it_takes(seconds: float) -> None:
    """In flight meanwhile, also while the target is ready and the source still runs; then Settled."""
    play = Migration()
    play.mark()
    play.target("web-2", ready=False)
    play.pass_time(seconds / 2)
    play.target("web-2", ready=True)
    play.pass_time(seconds / 2)

    assert play.end == ("Evicting", deferral.DEFERRED)
    assert play.machine.in_flight() == {"default/uid-ReplicaSet/web": 1}

    play.source_ends()

    assert play.written(play.key)[-1] == ("Settled", "web-2")
    assert play.requests == 1
    assert play.machine.in_flight() == {}


def test_a_failed_attempt_is_no_outcome() -> None:
    """The target of the first attempt was ready and is gone; the record names the second one."""
    play = Migration()
    play.mark()
    play.target("web-2", ready=True)
    play.watch(PodDeleted(a_sibling("web-2", "good")))
    play.world.pods.pop(a_sibling("web-2", "good").uid)
    play.pass_time(300)
    play.target("web-3", ready=False)
    play.source_ends()
    assert play.end[0] == "Evicted", "not Settled: the second one is not ready"
    play.target("web-3", ready=True)

    assert play.written(play.key)[-1] == ("Settled", "web-3")


def test_the_target_that_is_gone_when_the_source_ends_is_not_named() -> None:
    """Its owner makes another pod, or the move fails."""
    play = Migration()
    play.mark()
    play.target("web-2", ready=True)
    play.world.pods.pop(a_sibling("web-2", "good").uid)
    play.source_ends()
    play.pass_time(PATIENCE_S + 1)

    assert play.end == ("Failed", "NoReplacement")


def test_an_answer_of_others_counts_as_soon_as_the_pod_says_so() -> None:
    """A plain 429, and then the annotation, before the next try or together with the answer."""
    later = Migration(BUSY)
    later.mark()
    early = Migration.__new__(Migration)
    Watched.__init__(early, a_sibling("web-1", "bad"))
    early.world.pods[a_move().pod.uid] = replace(facts_of(a_move()), in_progress=True)
    early.key = early.evicted(answer=WriteResult(WriteOutcome.REFUSED, "not now"))

    for play in (later, early):
        play.pass_time(30)
        assert play.end == ("Evicting", deferral.DEFERRED)
        assert play.requests == 1


def test_a_busy_server_is_asked_again() -> None:
    play = Migration(BUSY)
    play.pass_time(0.5)

    assert play.requests == 2


@pytest.mark.parametrize(
    ("after", "said"),
    [
        pytest.param(lambda play: None, "neither the annotation", id="no sign"),
        pytest.param(lambda play: (play.mark(), play.mark(present=False)), "was removed", id="given up"),
        pytest.param(lambda play: (play.target("web-2", ready=False),
                                   play.watch(PodDeleted(a_sibling("web-2", "good")))),
                     "neither the annotation", id="its only pod is gone"),
    ],
)  # fmt: skip
def test_what_is_not_carried_out_fails_after_two_minutes(after: Any, said: str) -> None:
    """The pod stays, and the owner is left alone for a while as after any refusal."""
    play = Migration()
    after(play)
    play.pass_time(deferral.SIGN_S - 1)
    assert play.end == ("Evicting", deferral.DEFERRED)
    play.pass_time(2)

    assert play.end == ("Failed", deferral.ABANDONED)
    state = play.state(play.key)
    assert state is not None
    assert said in state.message


def test_it_has_the_time_that_the_policy_gives() -> None:
    """An hour without one; the annotation alone keeps it going until then."""
    play = Migration()
    play.mark()
    play.pass_time(deferral.LONGEST_S - 1)
    assert play.end == ("Evicting", deferral.DEFERRED)
    play.pass_time(2)

    assert play.end == ("Failed", deferral.ABANDONED)


def test_a_policy_may_give_less_time() -> None:
    """``deferredEvictionTimeoutSeconds`` comes with the judgement of the move."""
    play = Migration(timeout_s=600.0)
    play.mark()
    play.pass_time(599)
    assert play.end == ("Evicting", deferral.DEFERRED)
    play.pass_time(2)

    assert play.end == ("Failed", deferral.ABANDONED)


def test_a_pod_that_is_deleted_later_counts_as_evicted() -> None:
    """A webhook that lets its controller drain the pod first."""
    play = Migration()
    play.pass_time(60)
    play.world.pods[play.pod] = replace(facts_of(a_move()), terminating=True)
    play.tell(events.PodTerminating(play.key))
    assert play.end == ("Evicted", "Accepted")
    play.target("web-2", ready=True)

    assert play.written(play.key)[-1] == ("Settled", "web-2")


def test_a_pod_that_takes_an_hour_to_end_is_waited_for() -> None:
    """Its owner replaces it only when it is gone; a finalizer does not hold the record open for ever."""
    slow = Migration(DONE)
    slow.world.pods[slow.pod] = replace(facts_of(a_move()), terminating=True)
    stuck = Migration(DONE)
    stuck.world.pods[stuck.pod] = replace(facts_of(a_move()), terminating=True)
    slow.tell(events.PodTerminating(slow.key))

    slow.pass_time(3500)
    assert slow.stage(slow.key) is MoveStage.REPLACING
    assert slow.end == ("Evicted", "Leaving")
    slow.world.pods.pop(slow.pod)
    slow.tell(events.PodGone(slow.key))
    slow.pass_time(PATIENCE_S - 1)
    slow.target("web-2", ready=True)
    stuck.pass_time(4500)

    assert slow.written(slow.key)[-1] == ("Settled", "web-2")
    assert stuck.end == ("Failed", "NoReplacement")
    assert TimerName.REPLACEMENT not in stuck.state(stuck.key).timers


def test_phases_follow_each_other() -> None:
    """From Evicting to Evicted, as in any other move."""
    play = Migration()
    play.mark()
    play.source_ends()

    phases = [each for each, _ in play.written(play.key)]
    assert phases == [Phase.EVICTING, Phase.EVICTING, Phase.EVICTED]
