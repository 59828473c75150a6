"""Kept equals rebuilt when volumes, services and nominations come and go, too; forks are apart."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.test_incremental import PROFILE, judged
from plimsoll.engine.attempt import schedule
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import Namespace, Service
from plimsoll.testing.builders import a_cluster, a_pod
from plimsoll.testing.columns import validate
from plimsoll.testing.drawn_worlds import APPS, ZONES, some_nodes, some_pod
from plugins.stored import a_claim, a_class, a_csi_node, a_volume, an_attachment, mounting

NODE = st.sampled_from(["n0", "n1", "n2", "n3"])
CLAIM = st.sampled_from(["c0", "c1", "c2"])
SIZE = st.sampled_from(["1Gi", "5Gi", "20Gi"])


@st.composite
def some_stored_pod(draw: Callable[..., Any], name: str = "incoming", node: str = "") -> Pod:
    """A pod with up to two claims; some of them have devices of the cloud, too."""
    volumes = mounting(*draw(st.lists(CLAIM, max_size=2, unique=True)))
    if draw(st.booleans()):
        volumes.append({"name": "disk", "gcePersistentDisk": {"pdName": draw(st.sampled_from(["d0", "d1"]))}})
    return a_pod(
        name,
        node=node,
        labels={"app": draw(st.sampled_from(APPS))},
        cpu=draw(st.sampled_from(["0", "2"])),
        priority=draw(st.sampled_from([0, 10])),
        volumes=volumes,
    )


@st.composite
def some_object(draw: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    """A change of the objects other than nodes and pods, to be applied to a cluster; equal keys replace."""
    kind = draw(
        st.sampled_from(["class", "claim", "bound", "volume", "csi node", "attachment", "service", "labels"])
    )
    claim, size, zone = draw(CLAIM), draw(SIZE), draw(st.sampled_from(ZONES))
    volume, node, mode = (
        f"v-{claim}",
        draw(NODE),
        draw(st.sampled_from(["WaitForFirstConsumer", "Immediate"])),
    )
    zones, count, app = (
        draw(st.sampled_from([(), (zone,)])),
        draw(st.integers(0, 2)),
        draw(st.sampled_from(APPS)),
    )
    access = draw(st.sampled_from(["ReadWriteOnce", "ReadWriteOncePod"]))

    def put_service(cluster: Cluster) -> None:
        spec = {"selector": {"app": app}}
        cluster.objects.services["default/s"] = convert(
            Service, {"metadata": {"name": "s", "namespace": "default"}, "spec": spec}
        )
        cluster.objects.version += 1

    def put_labels(cluster: Cluster) -> None:
        labels = {"metadata": {"name": "default", "labels": {"team": zone}}}
        cluster.objects.namespaces["default"] = convert(Namespace, labels)
        cluster.objects.version += 1

    changes = {
        "class": ("class", lambda cluster: a_class(cluster, mode=mode)),
        "claim": (claim, lambda cluster: a_claim(cluster, claim, size=size, accessModes=[access])),
        "bound": (claim, lambda cluster: a_claim(cluster, claim, volume=volume, accessModes=[access])),
        "volume": (volume, lambda cluster: a_volume(cluster, volume, size=size, zones=zones)),
        "csi node": (f"csi {node}", lambda cluster: a_csi_node(cluster, node, csi_example_com=count)),
        "attachment": ("a", lambda cluster: an_attachment(cluster, "a", volume=volume, node=node)),
        "service": ("s", put_service),
        "labels": ("default", put_labels),
    }
    return changes[kind]


class ObjectsAndForks(RuleBasedStateMachine):
    """Everything that decisions read comes and goes; a fork lives as long as its parent for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[Any, Any] = {}
        self.pods: dict[Any, Any] = {}
        self.objects: dict[Any, Any] = {}
        self.asked: list[Any] = []
        self.scheduler = ProfileScheduler(PROFILE, a_cluster())
        self.fork = None
        self.said: list[Any] = []

    @initialize(
        nodes=some_nodes(),
        drawn=st.lists(some_object(), max_size=8),
        pods=st.lists(some_stored_pod(), min_size=2, max_size=2),
    )
    def there_is_something_to_begin_with(self, nodes: Any, drawn: Any, pods: Any) -> None:
        self.nodes_come_or_change(nodes)
        self.objects_change([("class", a_class), *drawn])
        self.asked = pods

    def fresh(self) -> ProfileScheduler:
        cluster = a_cluster(self.nodes.values(), self.pods.values())
        for change in self.objects.values():
            change(cluster)
        other = ProfileScheduler(PROFILE, cluster)
        for name, pods in self.scheduler.nominator.by_node.items():
            for pod in pods.values():
                other.nominator.add(cluster.templates.info(pod.pod), name)
        return other

    @rule(nodes=some_nodes())
    def nodes_come_or_change(self, nodes: Any) -> None:
        for node in nodes:
            self.nodes[node.name] = node
            self.scheduler.cluster.set_node(node)

    @rule(name=NODE)
    def a_node_goes(self, name: str) -> None:
        if self.nodes.pop(name, None):
            self.scheduler.cluster.remove_node(name)

    @rule(drawn=st.lists(some_object(), min_size=1, max_size=4))
    def objects_change(self, drawn: Any) -> None:
        for key, change in drawn:
            self.objects.pop(key, None)
            self.objects[key] = change
            change(self.scheduler.cluster)

    @rule(data=st.data(), node=NODE, name=st.sampled_from(["p0", "p1", "p2", "p3"]))
    def a_pod_is_placed(self, data: Any, node: str, name: str) -> None:
        pod = data.draw(st.one_of(some_stored_pod(name, node), some_pod(name, node)))
        cluster = self.scheduler.cluster
        if name in self.pods:
            cluster.displace(self.pods[name].uid)
        self.pods[name] = pod
        cluster.place(cluster.templates.info(pod), node)

    @rule(name=st.sampled_from(["p0", "p1", "p2", "p3"]))
    def a_pod_goes(self, name: str) -> None:
        pod = self.pods.pop(name, None)
        if pod is not None:
            self.scheduler.cluster.displace(pod.uid)

    @rule(pod=some_stored_pod("nominated"), node=NODE)
    def a_pod_is_nominated(self, pod: Any, node: str) -> None:
        self.scheduler.nominator.add(self.scheduler.cluster.templates.info(pod), node)

    @rule()
    def a_nomination_ends(self) -> None:
        self.scheduler.nominator.remove("uid-default-nominated")

    @rule(pod=st.one_of(some_stored_pod(), some_pod()))
    def another_pod_asks(self, pod: Any) -> None:
        self.asked = [*self.asked[-2:], pod]

    @invariant()
    def answers_equal_those_of_a_new_scheduler(self) -> None:
        fresh = self.fresh()
        for pod in self.asked:
            assert judged(self.scheduler, pod) == judged(fresh, pod)

    # -- a fork, seen from both sides ----------------------------------------------------------------

    @precondition(lambda self: self.fork is None)
    @rule()
    def a_fork_is_taken(self) -> None:
        """What the fork says is written down; whatever happens to its parent must not change it."""
        self.fork = ProfileScheduler(PROFILE, self.scheduler.cluster.fork())  # type: ignore[assignment] # a fake differs on purpose
        self.said = [(pod, judged(self.fork, pod)) for pod in self.asked]  # type: ignore[arg-type] # a fake has only what is used

    @invariant()
    def the_fork_says_what_it_said(self) -> None:
        for pod, before in self.said:
            assert judged(self.fork, pod) == before  # type: ignore[arg-type] # a fake has only what is used
            assert judged(ProfileScheduler(PROFILE, self.fork.cluster), pod) == before  # type: ignore[attr-defined] # known to exist in this test

    @precondition(lambda self: self.fork is not None)
    @rule(data=st.data(), nodes=some_nodes(), drawn=st.lists(some_object(), max_size=4))
    def a_fork_is_changed_and_dropped(self, data: Any, nodes: Any, drawn: Any) -> None:
        """Whatever happens to the fork must not change its parent: the invariant says whether it did."""
        cluster = self.fork.cluster  # type: ignore[attr-defined] # known to exist in this test
        for node in nodes:
            cluster.set_node(node)
        for _, change in drawn:
            change(cluster)
        for number in range(3):
            pod = data.draw(
                st.one_of(some_stored_pod(f"fork-{number}", "n0"), some_pod(f"fork-{number}", "n0"))
            )
            cluster.place(cluster.templates.info(pod), "n0")
            schedule(self.fork, cluster.templates.info(a_pod(f"asks-{number}", cpu="1")))  # type: ignore[arg-type] # a fake has only what is used
        for uid in list(cluster.pods)[:2]:
            cluster.displace(uid)
        if len(cluster) > 1:
            cluster.remove_node(cluster.nodes[0].name)
        validate(cluster)
        self.fork, self.said = None, []


TestObjectsAndForks = ObjectsAndForks.TestCase
TestObjectsAndForks.settings = settings(stateful_step_count=25, suppress_health_check=list(HealthCheck))
