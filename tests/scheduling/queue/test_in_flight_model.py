"""Pods in flight get the events since their attempt began, as one list of all events has them."""

from __future__ import annotations

from random import Random

from plimsoll.model.columns.cluster import Cluster
from plimsoll.scheduling.queue.in_flight import Happened, InFlight
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from plimsoll.testing.builders import a_pod

UIDS = [f"uid-default-p{n}" for n in range(4)]


class Flights:
    """All events ever, recorded or not, and where in them each attempt began."""

    def __init__(self) -> None:
        self.events: list[Happened] = []
        self.pods: dict[str, QueuedPod] = {}
        self.begun: dict[str, int] = {}

    def since(self, uid: str) -> list[Happened]:
        priority = self.pods[uid].pod.priority
        return [
            each
            for each in self.events[self.begun[uid] :]
            if each.but != uid
            and each.only in {"", uid}
            and (each.at_most is None or priority <= each.at_most)
        ]


def test_attempts_that_overlap_get_what_happened_during_each() -> None:
    """Begun again, settled before they end, ended in any order, and events that concern some of them."""
    templates = Cluster().templates
    for seed in range(150):
        random, flying, plain = Random(seed), InFlight(), Flights()
        for number in range(30):
            uid, is_pruned = random.choice(UIDS), False
            match random.choice(["launch", "launch", "record", "record", "record", "settle", "land"]):
                case "launch":
                    pod = a_pod(uid.rpartition("-")[2], priority=random.randint(0, 2))
                    queued = QueuedPod(templates.info(pod), float(number), 0.0)
                    flying.launch(queued)
                    plain.pods[uid], plain.begun[uid] = queued, len(plain.events)
                case "record":
                    event = Happened(
                        None,
                        but=random.choice(["", "", *UIDS]),
                        only=random.choice(["", "", *UIDS]),
                        at_most=random.choice([None, None, 0, 1]),
                        is_ours=random.random() < 0.5,
                    )
                    flying.record(event)
                    plain.events.append(event)
                case "settle":
                    flying.settle(uid)
                    is_pruned = plain.begun.pop(uid, None) is not None
                case "land":
                    expected = None
                    if uid in plain.pods:
                        events = plain.since(uid) if uid in plain.begun else None
                        expected = plain.pods[uid], events
                        del plain.pods[uid]
                        is_pruned = plain.begun.pop(uid, None) is not None
                    landed = flying.land(uid)
                    assert (landed is None) == (expected is None)
                    if landed is not None and expected is not None:
                        assert landed[0] is expected[0]
                        assert landed[1] == expected[1]

            assert list(flying) == [*plain.pods.values()]
            assert [each in flying for each in UIDS] == [each in plain.pods for each in UIDS]
            assert [flying.find(each) for each in UIDS] == [plain.pods.get(each) for each in UIDS]
            assert flying.is_recording == bool(plain.begun)
            assert plain.begun or not flying._events
            if is_pruned:
                oldest = min(plain.begun.values(), default=len(plain.events))
                assert len(flying._events) == len(plain.events) - oldest, "what no attempt needs goes"
