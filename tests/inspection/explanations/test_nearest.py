"""The nearest miss makes the pod fit when it is granted, and no less does."""

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from inspection.explanations.random_clusters import PROFILE, a_random_cluster, a_random_pod
from plimsoll.engine.attempt import schedule
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.inspection.explanations.examination import Examination
from plimsoll.inspection.explanations.lacks import LackKind
from plimsoll.inspection.explanations.nearest import NearMiss, nearest_misses
from plimsoll.inspection.explanations.supposition import FreeResource, supposed
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_cluster, a_node, a_pod

PODS = 500


def nearest_of(pod: Pod, *nodes: Node) -> NearMiss:
    """The nearest miss of a pod in a cluster."""
    cluster = a_cluster(nodes)
    misses = nearest_misses(Examination(ProfileScheduler(PROFILE, cluster), cluster.templates.info(pod)))
    return misses[0]


@pytest.mark.slow  # 500 pods in some hundred clusters, each with forks
def test_the_nearest_miss_of_any_pod_lets_it_fit_once_granted() -> None:
    """Granted all that the node lacks, the scheduler binds the pod; with one unit less of a resource, not."""
    random = Random(20)
    kinds: Counter[LackKind] = Counter()
    pending = 0
    while pending < PODS:
        scheduler = a_random_cluster(random)
        for number in range(6):
            pod = a_random_pod(random, scheduler, number)
            if len(scheduler.rank(pod)):
                continue
            pending += 1
            misses = nearest_misses(Examination(scheduler, pod), limit=1)
            assert misses, f"no nearest miss of pod {number}: {schedule(scheduler, pod).message}"
            grants = [each.grant for each in misses[0].remedies]
            granted = supposed(scheduler, pod, grants)
            twin, wanted = granted.judge()
            assert schedule(twin, wanted).node, misses[0].text
            assert misses[0].node in granted.feasible(), misses[0].text
            kinds.update(each.kind for each in misses[0].lacks)
            for at, grant in enumerate(grants):
                if isinstance(grant, FreeResource) and len(grants) == 1:
                    less = [*grants[:at], replace(grant, amount=grant.amount - 1), *grants[at + 1 :]]
                    assert misses[0].node not in supposed(scheduler, pod, less).feasible(), misses[0].text
    assert set(kinds) == set(LackKind) - {LackKind.OTHER}


def test_a_little_cpu_is_nearer_than_a_taint_and_that_nearer_than_both() -> None:
    """120m of 4 cpu is 3 %; a taint counts 1; two plugins come last."""
    nodes = (
        a_node("both", cpu="3900m", taints=["dedicated=gpu:NoSchedule"]),
        a_node("short", cpu="3880m"),
        a_node("tainted", cpu="8", taints=["dedicated=gpu:NoSchedule"]),
    )

    miss = nearest_of(a_pod(cpu="4"), *nodes)

    assert miss.text == "short lacks 120m cpu"
    assert [each.text for each in miss.remedies] == ["120m more cpu on short, which has 3880m in all"]


def test_a_taint_is_nearer_than_more_than_the_whole_node() -> None:
    """A node would have to grow to 5 times its size."""
    nodes = (a_node("small", cpu="1"), a_node("tainted", cpu="8", taints=["dedicated=gpu:NoSchedule"]))

    miss = nearest_of(a_pod(cpu="5"), *nodes)

    assert miss.text == "tainted has taint dedicated=gpu:NoSchedule, which the pod does not tolerate"


def test_a_cordon_and_its_taint_are_one_thing() -> None:
    """The node controller takes the taint away with the cordon."""
    node = a_node("closed", unschedulable=True, taints=["node.kubernetes.io/unschedulable:NoSchedule"])

    miss = nearest_of(a_pod(cpu="1"), node)

    assert miss.text == "closed is cordoned"
    assert [each.text for each in miss.remedies] == ["node closed uncordoned"]


def test_room_that_is_nominated_is_missing() -> None:
    """A node that is held for a pod of higher priority lacks what that pod takes."""
    cluster = a_cluster([a_node("held", cpu="4")])
    scheduler = ProfileScheduler(PROFILE, cluster)
    scheduler.nominator.add(cluster.templates.info(a_pod("first", cpu="3", priority=9)), "held")

    examination = Examination(scheduler, cluster.templates.info(a_pod(cpu="2")))

    assert nearest_misses(examination)[0].text == "held lacks 1 cpu"
    assert examination.by_plugin() == {"NodeResourcesFit": {"Insufficient cpu": 1}}


def test_a_pod_that_its_own_wishes_contradict_needs_other_wishes() -> None:
    """No label helps a selector that the affinity excludes."""
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd"]}]}
                ]
            }
        }
    }

    miss = nearest_of(a_pod(node_selector={"disk": "ssd"}, affinity=affinity), a_node("n"))

    assert [each.text for each in miss.remedies] == ["no node selector and no required node affinity"]


@pytest.mark.parametrize(
    ("requirement", "text", "remedy"),
    [
        ({"operator": "In", "values": ["ssd"]}, "n lacks label disk=ssd", "label disk=ssd on node n"),
        ({"operator": "NotIn", "values": ["hdd"]}, "n has label disk=hdd", "no label disk on node n"),
        ({"operator": "DoesNotExist"}, "n has label disk=hdd", "no label disk on node n"),
    ],
)
def test_a_label_that_a_node_lacks_or_should_not_have_is_named(
    requirement: dict[str, object], text: str, remedy: str
) -> None:
    """With the value that it would need, or has."""
    terms = [{"matchExpressions": [{"key": "disk", **requirement}]}]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }

    miss = nearest_of(a_pod(affinity=affinity), a_node("n", labels={"disk": "hdd"}))

    assert miss.text == text
    assert miss.remedies[0].text == remedy


def test_a_pod_whose_claim_does_not_exist_has_no_nearest_miss() -> None:
    """No node can help it."""
    pod = a_pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}])

    cluster = a_cluster([a_node("n")])

    misses = nearest_misses(Examination(ProfileScheduler(PROFILE, cluster), cluster.templates.info(pod)))

    assert misses == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9])
def test_so_many_misses_are_shown_each_of_another_kind(limit: int) -> None:
    """The nearest of each set of plugins that refuse, as long as there are more."""
    nodes = (
        a_node("short", cpu="3880m"),
        a_node("shorter", cpu="3"),
        a_node("tainted", cpu="8", taints=["dedicated=gpu:NoSchedule"]),
        a_node("both", cpu="3900m", taints=["dedicated=gpu:NoSchedule"]),
        a_node("closed", cpu="8", unschedulable=True),
    )
    cluster = a_cluster(nodes)
    examination = Examination(ProfileScheduler(PROFILE, cluster), cluster.templates.info(a_pod(cpu="4")))

    misses = [each.node for each in nearest_misses(examination, limit)]

    assert misses == ["short", "closed", "tainted", "both"][:limit]


def test_one_pod_too_many_in_a_zone_is_as_near_as_a_taint_and_nearer_than_two_lacks() -> None:
    """Each counts 1; of equals, names decide."""
    zone = "topology.kubernetes.io/zone"
    spread = {
        "maxSkew": 1,
        "topologyKey": zone,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = [
        a_node("spread", labels={zone: "a"}),
        a_node("tainted", labels={zone: "b"}, taints=["dedicated=gpu:NoSchedule"]),
    ]
    cluster = a_cluster(nodes, [a_pod("web-0", node="spread", labels={"app": "web"})])
    pod = cluster.templates.info(a_pod("web-1", labels={"app": "web"}, topologySpreadConstraints=[spread]))

    misses = nearest_misses(Examination(ProfileScheduler(PROFILE, cluster), pod))

    assert [each.node for each in misses] == ["spread", "tainted"]
