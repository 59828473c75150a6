"""The machine and the sightings together: watch events on one side, the end of moves on the other."""

from math import inf
from typing import Any

import pytest

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.moves.events import (
    EvictionAnswered,
    RecordAnswered,
    Revalidated,
    TimedOut,
)
from plimsoll.rebalancing.moves.instructions import FollowReplacement, RetryAt, StopFollowing, WriteRecord
from plimsoll.rebalancing.moves.outcomes import PATIENCE_S
from plimsoll.rebalancing.moves.sightings import ReplacementSightings
from plimsoll.rebalancing.moves.state import EvictionMethod, MoveStage, TimerName
from rebalancing.moves.invariants import check_sightings
from rebalancing.moves.moved import a_sibling
from rebalancing.moves.moves_world import DONE, Play, a_move

OWNER = "uid-ReplicaSet/web"


class Watched(Play):
    """A machine whose replacements are looked out for."""

    def __init__(self, *pods: Any) -> None:
        super().__init__()
        self.sightings = ReplacementSightings()
        self.watch(*(PodAdded(pod) for pod in pods))

    def tell(self, *events: Any) -> Any:
        """Events, and those that follow from the sightings."""
        orders = []
        for event in events:
            told = super().tell(event)
            orders += told
            for each in told:
                if isinstance(each, FollowReplacement):
                    orders += self.tell(*self.sightings.follow(each))
                elif isinstance(each, StopFollowing):
                    self.sightings.stop(each)
        check_sightings(self.sightings)
        return orders

    def watch(self, *events: Any) -> None:
        """What the watch tells."""
        for event in events:
            self.tell(*self.sightings.observe(event))

    def evicted(self, number: Any = 1, answer: Any = DONE, timeout_s: float = inf) -> Any:
        """A move whose eviction was answered; its key."""
        move = a_move(number)
        (key,) = self.plan(move)
        self.tell(
            RecordAnswered(key, Phase.PLANNED, DONE), Revalidated(key, move, EvictionMethod.EVICT, timeout_s)
        )
        self.tell(RecordAnswered(key, Phase.EVICTING, DONE), EvictionAnswered(key, answer))
        return key

    def written(self, key: Any) -> Any:
        """The phases and replacements that were written of a move."""
        return [
            (each.phase.value, each.replacement.name if each.replacement else "")
            for each in self.ordered
            if isinstance(each, WriteRecord) and each.key == key
        ]


def test_a_move_is_settled_by_the_pod_that_its_controller_makes() -> None:
    """From the watch to the record."""
    play = Watched(a_sibling("web-1", "bad"))
    key = play.evicted()

    play.watch(PodDeleted(a_sibling("web-1", "bad")), PodAdded(a_sibling("web-2", "good")))

    assert play.written(key)[-1] == ("Settled", "web-2")


def test_replacements_that_crash_do_not_win_more_time_each() -> None:
    """The time to become ready is given once, however many pods the controller makes meanwhile."""
    play = Watched(a_sibling("web-1", "bad"))
    key = play.evicted()
    for number in range(2, 9):
        running = a_sibling(f"web-{number}", "good", ready=False)
        play.now += 40
        play.watch(PodAdded(running), PodDeleted(running))

    due = [
        each.at for each in play.ordered if isinstance(each, RetryAt) and each.timer is TimerName.REPLACEMENT
    ]
    assert due == [1_000 + PATIENCE_S, 1_040 + PATIENCE_S]
    play.tell(TimedOut(key, TimerName.REPLACEMENT))
    assert play.written(key)[-1] == ("Failed", "")


def test_moves_in_flight_are_counted_by_owner() -> None:
    """So that the next run leaves the workload alone; one that was refused is not under way."""
    play = Watched(a_sibling("web-1", "bad"), a_sibling("web-2", "bad"), a_sibling("web-3", "bad"))
    play.evicted(1)
    play.evicted(2, WriteResult(WriteOutcome.REFUSED, "forbidden"))
    play.evicted(3)
    before = play.machine.in_flight()

    play.watch(PodAdded(a_sibling("web-4", "good")))

    assert before == {f"default/{OWNER}": 2}
    assert play.machine.in_flight() == {f"default/{OWNER}": 1}


@pytest.mark.parametrize(
    ("last", "phase"),
    [
        pytest.param(a_sibling("web-2", "bad"), "Returned", id="same-node"),
        pytest.param(a_sibling("web-2", "good"), "Settled", id="elsewhere"),
    ],
)
def test_bound_and_running_are_not_enough(last: Any, phase: Any) -> None:
    """Until the replacement is ready the next move of its workload waits."""
    play = Watched(a_sibling("web-1", "bad"))
    key = play.evicted()
    pending, running = a_sibling("web-2"), a_sibling("web-2", last.node_name, ready=False)

    play.watch(PodAdded(pending), PodUpdated(pending, running))
    early = play.stage(key), play.machine.in_flight()
    play.watch(PodUpdated(running, last))

    assert early == (MoveStage.REPLACING, {f"default/{OWNER}": 1})
    assert play.written(key)[-1] == (phase, "web-2")
    assert play.machine.in_flight() == {}
