"""Draws the clusters on which laws are tried: nodes, pods on them, a pod to be placed, other objects.

They have everything that the plugins in tree read: labels, taints, requests, tolerations, selectors, ports,
affinities, spreading, images, several namespaces, owners. Authors add what theirs reads
(:class:`Drawing`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from plimsoll.framework.capabilities import declares_of
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_cluster, a_node, a_pod

ZONES = ("a", "b", "c")
MORE: tuple[dict[str, str | int], ...] = ({}, {"example.com/gpu": 2}, {"ephemeral-storage": "10Gi"})
APPS = ("web", "db", "batch")

#: The loaded hypothesis profile determines the number of examples.
LAWFUL = settings(deadline=None, suppress_health_check=list(HealthCheck))

T = TypeVar("T")

#: Keyword arguments of ``a_node`` or ``a_pod``.
Fields = Mapping[str, Any]
NOTHING: Fields = {}


class Picks:
    """Picks options by the digits of one number.

    Drawing one number per object instead of one per field takes a third of the time. The first option is the
    simplest one, because numbers shrink towards zero.
    """

    def __init__(self, number: int) -> None:
        self._rest = number

    def one(self, options: Sequence[T]) -> T:
        """The option of the next digit."""
        self._rest, digit = divmod(self._rest, len(options))
        return options[digit]


#: Exceeds the number of combinations of the options below.
NUMBERS = st.integers(0, 2**23 - 1)

#: The same with an author's alternatives.
LARGEST = 2**28
LARGE_NUMBERS = st.integers(0, LARGEST - 1)

#: What a world is made from: a number for each node, each pod, the three others, and the objects.
WORLDS = st.tuples(
    st.lists(LARGE_NUMBERS, min_size=1, max_size=8),
    st.lists(LARGE_NUMBERS, max_size=10),
    st.tuples(LARGE_NUMBERS, LARGE_NUMBERS, LARGE_NUMBERS),
    LARGE_NUMBERS,
)


def _node(name: str, pick: Picks, own: Fields = NOTHING) -> Node:
    fields: dict[str, Any] = {
        "cpu": pick.one(["4", "1", "1500m", "0", "64"]),
        "memory": pick.one(["16Gi", "1Gi", "3Gi", "0"]),
        "pods": pick.one([110, 3, 1]),
        "allocatable": pick.one(MORE),
        "labels": pick.one([{}] + [{"topology.kubernetes.io/zone": zone, "disk": "ssd"} for zone in ZONES]),
        "taints": pick.one(
            [(), ("dedicated=db:NoSchedule",), ("old:PreferNoSchedule",), ("gone:NoExecute",)]
        ),
        "unschedulable": pick.one([False, True]),
        "status": {"images": pick.one([[], [{"names": ["app:latest"], "sizeBytes": 300_000_000}]])},
    }
    return a_node(name, **_merged(fields, own))


def _merged(drawn: Fields, own: Fields) -> Fields:
    """What an author asks for over what is drawn; labels of both."""
    labels = {"labels": {**drawn["labels"], **own["labels"]}} if "labels" in own else {}
    return {**drawn, **own, **labels}


def _pod(name: str, node: str, pick: Picks, own: Fields = NOTHING) -> Pod:
    app = pick.one(APPS)
    term = {
        "topologyKey": pick.one(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
        "labelSelector": {"matchLabels": {"app": pick.one(APPS)}},
    }
    extra: dict[str, Any] = pick.one(
        [
            {},
            {"node_selector": {"disk": "ssd"}},
            {"tolerations": [{"operator": "Exists"}]},
            {"tolerations": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
            {
                "affinity": {
                    "podAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 30, "podAffinityTerm": term}
                        ]
                    },
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 7,
                                "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
                            }
                        ]
                    },
                }
            },
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "whenUnsatisfiable": when, **term}
                    for when in ("DoNotSchedule", "ScheduleAnyway")
                ]
            },
            {
                "containers": [
                    {"name": "main", "image": "app", "ports": [{"containerPort": 80, "hostPort": 80}]}
                ]
            },
        ]
    )
    fields: dict[str, Any] = {
        "namespace": pick.one(["default", "other"]),
        "labels": {"app": app},
        "node": node,
        "owner": pick.one(["", f"ReplicaSet/{app}"]),
        "cpu": pick.one([None, "0", "100m", "2"]),
        "memory": pick.one([None, "64Mi", "2Gi"]),
        "requests": pick.one([{}, {"example.com/gpu": 1}]),
        "priority": pick.one([None, 0, 1000]),
        **extra,
    }
    return a_pod(name, **_merged(fields, own))


@st.composite
def some_nodes(draw: st.DrawFn) -> list[Node]:
    """Up to eight nodes of different sizes, zones and taints."""
    numbers = draw(st.lists(NUMBERS, min_size=1, max_size=8))
    return [_node(f"n{place}", Picks(number)) for place, number in enumerate(numbers)]


@st.composite
def some_pod(draw: st.DrawFn, name: str = "incoming", node: str = "") -> Pod:
    """A pod that may request anything that the in-tree plugins evaluate."""
    return _pod(name, node, Picks(draw(NUMBERS)))


@st.composite
def some_cluster(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """Nodes, and up to ten pods on them."""
    nodes = draw(some_nodes())
    pods = []
    for place, number in enumerate(draw(st.lists(NUMBERS, max_size=10))):
        pick = Picks(number)
        pods.append(_pod(f"p{place}", pick.one(nodes).name, pick))
    return nodes, pods


@dataclass(frozen=True)
class World:
    """One drawn cluster.

    Attributes:
        nodes: Up to eight.
        pods: Up to ten, each on a node.
        pod: The pod to be placed, or another one that arrives.
        extra: A further pod, on one of the nodes.
        node: Another state of the first node.
        objects: Of other kinds.
        kinds: The kinds that the plugin or strategy declares.
    """

    nodes: list[Node]
    pods: list[Pod]
    pod: Pod
    extra: Pod
    node: Node
    objects: tuple[Any, ...]
    kinds: tuple[type[Any], ...]

    def cluster(self) -> Cluster:
        """A new cluster of these."""
        return a_cluster(self.nodes, self.pods, self.objects, self.kinds)


class Drawing:
    """What the drawn clusters have in addition; an author's test class sets it.

    Attributes:
        nodes: Alternatives of what a node has, as keyword arguments of ``a_node``; labels are added.
        pods: The same of pods, for ``a_pod``.
        objects: Objects of other kinds, of which each cluster has some.
    """

    nodes: ClassVar[Sequence[Fields]] = (NOTHING,)
    pods: ClassVar[Sequence[Fields]] = (NOTHING,)
    objects: ClassVar[Sequence[Any]] = ()

    def _worlds(self, subject: object) -> st.SearchStrategy[World]:
        """Clusters, as hypothesis draws them."""
        return WORLDS.map(lambda numbers: self._world(subject, *numbers))

    def _some_worlds(self, subject: object, most: int) -> Iterator[World]:
        """The same clusters each time."""
        random = Random(1)  # noqa: S311 - the same each time
        for _ in range(most):
            numbers = [random.randrange(LARGEST) for _ in range(22)]
            few, many = random.randrange(1, 9), random.randrange(11)
            three = (numbers[18], numbers[19], numbers[20])
            yield self._world(subject, numbers[:few], numbers[8 : 8 + many], three, numbers[21])

    def _world(
        self,
        subject: object,
        nodes: Sequence[int],
        pods: Sequence[int],
        three: tuple[int, int, int],
        chosen: int,
    ) -> World:
        made = [self._node(f"n{place}", number) for place, number in enumerate(nodes)]
        names = [each.name for each in made]
        return World(
            nodes=made,
            pods=[self._pod(f"p{place}", number, names) for place, number in enumerate(pods)],
            pod=self._pod("incoming", three[0]),
            extra=self._pod("extra", three[1], names),
            node=self._node("n0", three[2]),
            objects=tuple(each for place, each in enumerate(self.objects) if chosen >> place & 1),
            kinds=declares_of(subject).objects,
        )

    def _node(self, name: str, number: int) -> Node:
        pick = Picks(number)
        return _node(name, pick, pick.one(self.nodes))

    def _pod(self, name: str, number: int, nodes: Sequence[str] = ("",)) -> Pod:
        pick = Picks(number)
        own, node = pick.one(self.pods), pick.one(nodes)
        return _pod(name, node, pick, own)
