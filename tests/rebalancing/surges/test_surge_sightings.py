"""The sightings of surges equal a plain model: pods come, end, are made again under their names."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from planning.surge_builders import a_replica_set, an_only_pod
from plimsoll.api.v1alpha1.eviction import EvictionSpec
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated
from plimsoll.framework import ClusterObjects
from plimsoll.model.kinds.deployment import SURGED, mark_of
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.names import RecordKey
from plimsoll.rebalancing.moves.events import ReplacementLost, ReplacementReady, ReplacementReturned
from plimsoll.rebalancing.moves.instructions import FollowReplacement, StopFollowing
from plimsoll.rebalancing.surges.sightings import SurgeSightings
from rebalancing.moves.moved import a_spec

KEY = RecordKey("default/web-1-record")
SURGE = {"deployment": "web", "uid": "uid-Deployment/web", "template": "t"}
NAMES = st.sampled_from(["web-2-a", "web-2-b"])


def the_spec() -> EvictionSpec:
    return a_spec("web-1", owner="web-1", surge=SURGE)


def a_replacement(name: str, born: int, node: str = "", *, ready: bool = False, phase: str = "") -> Pod:
    """The pod of a rollout; each birth has a uid of its own."""
    status: dict[str, Any] = {"phase": phase or ("Running" if ready else "Pending")}
    status["conditions"] = [{"type": "Ready", "status": str(ready)}]
    return an_only_pod(
        name,
        node=node,
        digest="2",
        uid=f"{name}-{born}",
        annotations={SURGED: mark_of("web-1-record", "bad")},
        status=status,
    )


@settings(max_examples=40, stateful_step_count=25)
class Rollout(RuleBasedStateMachine):
    """One surge, with pods that come and go; what the events add up to is the credited pod."""

    def __init__(self) -> None:
        super().__init__()
        objects = ClusterObjects()
        objects.replica_sets["default/web-2"] = a_replica_set(digest="2")
        self.sightings = SurgeSightings(objects)
        self.alive: dict[str, Pod] = {}  #: keyed by name, the first to come first
        self.credited = ""  #: uid, by the model
        self.known = ""  #: uid, by the events
        self.last: Any = None  #: facts of the last event; what has not changed is not told again
        self.is_followed = False
        self.births = 0

    def heard(self, events: Any) -> None:
        """Follow the events, which may not contradict themselves, and the model."""
        if events:
            assert events[-1].pod != self.last or isinstance(events[-1], ReplacementLost)
            self.last = None if isinstance(events[-1], ReplacementLost) else events[-1].pod
        for each in events:
            if isinstance(each, ReplacementLost):
                assert self.known == each.pod.uid
                self.known = ""
            else:
                assert self.known in {"", each.pod.uid}
                self.known = each.pod.uid
                pod = next(pod for pod in self.alive.values() if pod.uid == each.pod.uid)
                assert isinstance(each, ReplacementReady) is (pod.is_ready and pod.node_name == "good")
                assert isinstance(each, ReplacementReturned) is (pod.is_ready and pod.node_name == "bad")
        living = [pod.uid for pod in self.alive.values() if not pod.is_terminal]
        if self.is_followed and self.credited not in living:
            self.credited = next(iter(living), "")

    @rule(name=NAMES)
    def comes(self, name: str) -> None:
        if name in self.alive:
            self.goes(name)
        self.births += 1
        pod = self.alive[name] = a_replacement(name, self.births)
        self.heard(self.sightings.observe(PodAdded(pod)))

    @rule(
        name=NAMES,
        node=st.sampled_from(["good", "bad"]),
        ready=st.booleans(),
        phase=st.sampled_from(["", "Failed"]),
    )
    def changes(self, name: str, node: str, ready: bool, phase: str) -> None:
        old = self.alive.get(name)
        if old is None or old.is_terminal:
            return
        born = int(old.uid.rpartition("-")[2])
        new = a_replacement(name, born, node, ready=ready and not phase, phase=phase)
        self.alive[name] = new
        self.heard(self.sightings.observe(PodUpdated(old, new)))

    @rule(name=NAMES)
    def goes(self, name: str) -> None:
        old = self.alive.pop(name, None)
        if old is not None:
            self.heard(self.sightings.observe(PodDeleted(old)))

    @rule()
    def follows_or_stops(self) -> None:
        self.is_followed = not self.is_followed
        if self.is_followed:
            self.heard(self.sightings.follow(FollowReplacement(KEY, the_spec())))
        else:
            self.sightings.stop(StopFollowing(KEY))
            self.credited = self.known = ""
            self.last = None

    @invariant()
    def the_events_add_up_to_the_model(self) -> None:
        assert self.known == self.credited


TestRollout = Rollout.TestCase
