"""The requests of each owner's pods, kept as they come and go, against a look at all of them."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from plimsoll.model.columns.admitted_shapes import AdmittedShapes, difference
from plimsoll.model.kinds.pod_info import Holder, HolderKind, PodInfo, Templates
from plimsoll.testing.builders import a_cluster, a_node, a_pod

OLDEST = datetime(2000, 1, 1, tzinfo=UTC)
#: The age of a pod that the API server has not stamped.
UNDATED = -1
#: A pod by its number, its owner, its age in minutes, cores, and devices.
SPECS = st.tuples(
    st.integers(0, 7),
    st.sampled_from(["ReplicaSet/a", "ReplicaSet/b", ""]),
    st.integers(UNDATED, 3),
    st.integers(1, 2),
    st.integers(0, 1),
)


class Shapes(RuleBasedStateMachine):
    """Pods come one by one or together, leave, and come again."""

    def __init__(self) -> None:
        super().__init__()
        self.templates = Templates()
        self.kept = AdmittedShapes()
        self.placed: dict[int, PodInfo] = {}
        self.newest: dict[Any, datetime] = {}

    def pod(self, number: int, owner: str, minute: int, cpu: int, devices: int) -> PodInfo:
        dated = minute != UNDATED
        created = datetime(2026, 1, 1, 0, minute, tzinfo=UTC).isoformat() if dated else None
        return self.templates.info(
            a_pod(
                f"p{number}",
                owner=owner,
                cpu=str(cpu),
                requests={"example.com/device": devices} if devices else {},
                metadata={"creationTimestamp": created},
            )
        )

    @rule(spec=SPECS)
    def one_comes(self, spec: Any) -> None:
        self.one_leaves(spec[0])
        self.placed[spec[0]] = self.pod(*spec)
        self.kept.add(self.placed[spec[0]], 0)
        self.note()

    @rule(specs=st.lists(SPECS, max_size=5, unique_by=lambda spec: spec[0]))
    def some_come(self, specs: list[Any]) -> None:
        for spec in specs:
            self.one_leaves(spec[0])
        found = {spec[0]: self.pod(*spec) for spec in specs}
        self.placed |= found
        self.kept.add_all([(each, 0) for each in found.values()])
        self.note()

    @rule(spec=SPECS)
    def a_stand_in_comes_and_leaves(self, spec: Any) -> None:
        """It holds room for a pod, and shows nothing about what its siblings request."""
        stand_in = msgspec.structs.replace(self.pod(*spec), stands_in_for=Holder(HolderKind.POD, "p"))
        self.kept.add(stand_in, 0)
        self.kept.remove(stand_in, 0)

    @rule(number=st.integers(0, 7))
    def one_leaves(self, number: int) -> None:
        if (found := self.placed.pop(number, None)) is not None:
            self.kept.remove(found, 0)
            self.note()

    def kind(self, pod: PodInfo) -> Any:
        return pod.template.owner, tuple(sorted(pod.template.requests.items()))

    def note(self) -> None:
        """A time is kept while any pod with these requests is placed."""
        dated = [each for each in self.placed.values() if each.pod.metadata.creation_timestamp is not None]
        found = [(self.kind(each), self.created(each)) for each in dated]
        self.newest = {
            kind: max([time for each, time in found if each == kind] + [self.newest.get(kind, OLDEST)])
            for kind, _ in found
        }

    def plain(self, pod: PodInfo) -> dict[str, int] | None:
        """What the newest sibling requests, if it is more of anything; of one age, the larger."""
        owner = pod.template.owner
        siblings = [(time, kind[1]) for kind, time in self.newest.items() if owner and kind[0] == owner]
        if not siblings:
            return None
        _, newest = max(siblings)
        own = pod.template.requests
        return dict(newest) if any(amount > own.get(name, 0) for name, amount in newest) else None

    def created(self, pod: PodInfo) -> datetime:
        assert pod.pod.metadata.creation_timestamp is not None
        return pod.pod.metadata.creation_timestamp

    @invariant()
    def the_newest_of_an_owner_shows_what_is_admitted(self) -> None:
        for pod in (*self.placed.values(), *(self.pod(9, f"ReplicaSet/{each}", 0, 1, 0) for each in "ab")):
            found = self.kept.larger(pod)
            assert (None if found is None else dict(found.requests)) == self.plain(pod)


TestShapes = Shapes.TestCase
TestShapes.settings = settings(stateful_step_count=15, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize(
    ("newest", "said"),
    [
        ({}, ""),
        ({"cpu": "1"}, ""),
        ({"cpu": "2"}, "cpu 2 (now 1)"),
        ({"example.com/device": 1}, "example.com/device 1 (now 0)"),
        ({"example.com/device": 2, "cpu": "2"}, "cpu 2 (now 1), example.com/device 2 (now 0)"),
    ],
)
def test_what_a_replacement_requests_otherwise_is_said_with_what_the_pod_does(
    newest: dict[str, Any], said: str
) -> None:
    """Also of a resource of which the pod has none."""

    def made(name: str, minute: int, **requests: Any) -> Any:
        created = datetime(2026, 1, 1, 0, minute, tzinfo=UTC).isoformat()
        metadata = {"creationTimestamp": created}
        asked = {"cpu": "1", **requests}
        return a_pod(name, node="n", owner="ReplicaSet/a", requests=asked, metadata=metadata)

    old = made("old", 1)
    cluster = a_cluster([a_node("n")], [old, made("new", 2, **newest)])

    assert difference(cluster.pods[old.uid], cluster) == said
