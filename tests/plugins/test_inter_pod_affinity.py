"""InterPodAffinity, against upstream's rules and the conformance laws."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.framework import SKIP, SUCCESS, CycleState, Snapshot
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import Namespace
from plimsoll.plugins.inter_pod_affinity import REFUSALS, InterPodAffinity, InterPodAffinityArgs
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.conformance import FilterPluginConformance, ScorePluginConformance

ZONE = "topology.kubernetes.io/zone"
PLUGIN = InterPodAffinity(InterPodAffinityArgs())
OPEN, AFFINITY, ANTI, EXISTING = 0, 1, 2, 3
A, B = {"a1": "a", "a2": "a", "b1": "b"}, {"a1": "a", "b1": "b", "bare": None}


def term(app: str = "web", key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def far(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def rather(kind: str, weight: int, each: dict[str, Any]) -> dict[str, Any]:
    return {
        kind: {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": each}]
        }
    }


def a_cluster_of(zones: dict[str, Any], *pods: Pod) -> Cluster:
    nodes = [a_node(name, labels={ZONE: zone} if zone else {}) for name, zone in zones.items()]
    return a_cluster(nodes, pods)


def a_web_pod(name: str, node: str, app: str = "web", **more: Any) -> Pod:
    return a_pod(name, node=node, labels={"app": app}, **more)


def codes(cluster: Cluster, pod: Pod) -> Any:
    state, info, snapshot = CycleState(), cluster.templates.info(pod), Snapshot(cluster)
    assert PLUGIN.pre_filter(state, info, snapshot) == SUCCESS
    return PLUGIN.filter(state, info, snapshot).tolist()


def points(cluster: Cluster, pod: Pod, plugin: InterPodAffinity = PLUGIN) -> tuple[list[int], ...] | None:
    """Raw and normalised points of all nodes; None when the plugin has nothing to add."""
    state, info, snapshot = CycleState(), cluster.templates.info(pod), Snapshot(cluster)
    if plugin.pre_score(state, info, snapshot) == SKIP:
        return None
    raw = plugin.score(state, info, snapshot)
    return raw.tolist(), plugin.normalize(state, info, raw).tolist()


def test_required_affinity_keeps_to_the_domains_of_matching_pods() -> None:
    """Every node of the zone is near; a node without the label never is."""
    cluster = a_cluster_of({**A, "bare": None}, a_web_pod("w", "a1"))

    assert codes(cluster, a_pod(affinity=near(term()))) == [OPEN, OPEN, AFFINITY, AFFINITY]


def test_all_affinity_terms_must_hold_on_one_pod() -> None:
    """Two pods that match one term each do not help."""
    cluster = a_cluster_of(
        A, a_pod("w", node="a1", labels={"app": "web"}), a_pod("d", node="a1", labels={"tier": "db"})
    )
    both = near(term(), {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"tier": "db"}}})

    assert codes(cluster, a_pod(affinity=both)) == [AFFINITY] * 3


@pytest.mark.parametrize(
    ("others", "labels", "expected"),
    [
        pytest.param((), {"app": "web"}, [OPEN, OPEN, AFFINITY], id="first-of-its-kind"),
        pytest.param((), {"app": "db"}, [AFFINITY] * 3, id="does-not-match-itself"),
        pytest.param((("w", "b1"),), {"app": "web"}, [AFFINITY, OPEN, AFFINITY], id="somebody-is-there"),
    ],
)
def test_the_first_pod_of_a_group_may_go_anywhere_with_the_label(
    others: tuple[tuple[str, ...], ...], labels: dict[str, Any], expected: list[int]
) -> None:
    """Only when no pod matches anywhere, and the pod matches its own terms."""
    cluster = a_cluster_of(B, *(a_web_pod(*other) for other in others))

    assert codes(cluster, a_pod(labels=labels, affinity=near(term()))) == expected


def test_a_pod_whose_kin_are_in_domains_of_one_of_its_keys_is_not_the_first() -> None:
    """They are in a zone and in no rack: no node is in both the zone and a rack of theirs."""
    nodes = [a_node("a", labels={ZONE: "a"}), a_node("b", labels={ZONE: "a", "rack": "r"})]
    pod = a_pod(labels={"app": "web"}, affinity=near(term(), term(key="rack")))

    assert codes(a_cluster(nodes, [a_web_pod("w", "a")]), pod) == [AFFINITY] * 2
    assert codes(a_cluster(nodes, []), pod) == [AFFINITY, OPEN]


def test_required_anti_affinity_keeps_out_of_the_domains_of_matching_pods() -> None:
    """A node without the label always passes."""
    cluster = a_cluster_of({**A, "bare": None}, a_web_pod("w", "a1"))

    assert codes(cluster, a_pod(affinity=far(term()))) == [ANTI, ANTI, OPEN, OPEN]


def test_placed_pods_keep_others_out_of_their_domains() -> None:
    """An existing pod's anti-affinity binds newcomers that it matches, and no others."""
    cluster = a_cluster_of(A, a_pod("hermit", node="b1", affinity=far(term())))

    assert codes(cluster, a_pod("web", labels={"app": "web"})) == [OPEN, OPEN, EXISTING]
    info = cluster.templates.info(a_pod("db", labels={"app": "db"}))
    assert PLUGIN.pre_filter(CycleState(), info, Snapshot(cluster)) == SKIP


def test_rules_are_named_in_upstreams_order() -> None:
    """Affinity first, then the pod's anti-affinity, then the others'."""
    cluster = a_cluster_of(
        A, a_web_pod("w", "a1", app="db"), a_pod("hermit", node="a1", affinity=far(term("new")))
    )
    pod = a_pod(labels={"app": "new"}, affinity={**near(term("absent")), **far(term("db"))})

    assert codes(cluster, pod) == [AFFINITY] * 3
    assert codes(cluster, a_pod(labels={"app": "new"}, affinity=far(term("db")))) == [ANTI, ANTI, OPEN]


def test_counts_follow_every_pod() -> None:
    """Terms and matches are kept as pods come and go; the last pod with a term frees its domain."""
    cluster = a_cluster_of(A)
    pod = a_pod("new", labels={"app": "web"}, affinity=far(term("db")))
    hermit = cluster.templates.info(a_pod("hermit", affinity=far(term())))
    assert codes(cluster, pod) == [OPEN] * 3

    cluster.place(hermit, "a1")
    cluster.place(cluster.templates.info(a_web_pod("db", "", app="db")), "b1")
    assert codes(cluster, pod) == [EXISTING, EXISTING, ANTI]

    cluster.displace(hermit.uid)
    assert codes(cluster, pod) == [OPEN, OPEN, ANTI]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, [OPEN] * 3, id="own-namespace"),
        pytest.param({"namespaces": ["other"]}, [ANTI, ANTI, OPEN], id="listed"),
        pytest.param({"namespaceSelector": {}}, [ANTI, ANTI, OPEN], id="all"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "x"}}}, [ANTI, ANTI, OPEN], id="selected"
        ),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "y"}}}, [OPEN] * 3, id="not-selected"),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "q", "operator": "DoesNotExist"}]}},
            [ANTI, ANTI, OPEN],
            id="label-absent",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}},
            [OPEN] * 3,
            id="label-not-absent",
        ),
        pytest.param(
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]
                }
            },
            [OPEN] * 3,
            id="value-excluded",
        ),
    ],
)
def test_terms_mean_pods_of_their_namespaces(more: dict[str, Any], expected: list[int]) -> None:
    """Listed, selected by label, or the pod's own when neither is given."""
    cluster = a_cluster_of(A, a_web_pod("w", "a1", namespace="other"))
    cluster.objects.namespaces["other"] = convert(
        Namespace, {"metadata": {"name": "other", "labels": {"team": "x"}}}
    )
    cluster.objects.version += 1

    assert codes(cluster, a_pod(affinity=far(term(**more)))) == expected


def test_terms_of_placed_pods_are_judged_by_the_labels_of_the_pods_namespace() -> None:
    """A namespace selector of somebody else's term asks for the newcomer's namespace."""
    wanted = term(namespaceSelector={"matchLabels": {"team": "x"}})
    cluster = a_cluster_of(A, a_pod("hermit", node="a1", affinity=far(wanted)))
    pod = a_pod(namespace="other", labels={"app": "web"})
    info = cluster.templates.info(pod)
    assert PLUGIN.pre_filter(CycleState(), info, Snapshot(cluster)) == SKIP

    cluster.objects.namespaces["other"] = convert(
        Namespace, {"metadata": {"name": "other", "labels": {"team": "x"}}}
    )
    cluster.objects.version += 1

    assert codes(cluster, pod) == [EXISTING, EXISTING, OPEN]


def test_preferred_terms_add_and_subtract_their_weight() -> None:
    """Two web pods in zone a at 10 each, one db pod in zone b at -5; normalised between the extremes."""
    cluster = a_cluster_of(
        {**A, "bare": None}, a_web_pod("w1", "a1"), a_web_pod("w2", "a2"), a_web_pod("d", "b1", app="db")
    )
    pod = a_pod(affinity={**rather("podAffinity", 10, term()), **rather("podAntiAffinity", 5, term("db"))})

    # (0 - -5) / 25 = 20
    assert points(cluster, pod) == ([20, 20, -5, 0], [100, 100, 0, 20])


def test_terms_of_placed_pods_attract_and_repel() -> None:
    """Required affinity at hardPodAffinityWeight, preferred terms at their weight; all match the newcomer."""
    cluster = a_cluster_of(
        A,
        a_pod("fan", node="a1", affinity=near(term())),
        a_pod("shy", node="b1", affinity=rather("podAntiAffinity", 7, term())),
    )
    pod = a_pod("new", labels={"app": "web"})

    assert points(cluster, pod) == ([1, 1, -7], [100, 100, 0])
    assert points(cluster, pod, InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=0))) == (
        [0, 0, -7],
        [100, 100, 0],
    )
    assert points(cluster, a_pod("db", labels={"app": "db"})) is None


def test_preferred_terms_of_placed_pods_can_be_ignored() -> None:
    """Then a pod without preferred terms of its own is not scored, whichever pods prefer it."""
    plugin = InterPodAffinity(InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True))
    cluster = a_cluster_of(A, a_pod("fan", node="a1", affinity=rather("podAffinity", 3, term())))

    assert points(cluster, a_pod(labels={"app": "web"}), plugin) is None


def test_normalisation_truncates() -> None:
    """Upstream's example: -5, 0 and 7 become 0, 41 and 100; equal points become 0."""
    info = a_cluster().templates.info(a_pod())

    assert PLUGIN.normalize(CycleState(), info, np.array([-5, 0, 7])).tolist() == [0, 41, 100]
    assert PLUGIN.normalize(CycleState(), info, np.array([3, 3])).tolist() == [0, 0]


def test_a_pod_whose_terms_cannot_be_read_is_rejected() -> None:
    """With the reason, and permanently."""
    bad = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    cluster = a_cluster_of(A)
    info = cluster.templates.info(a_pod(affinity=near(bad)))

    status = PLUGIN.pre_filter(CycleState(), info, Snapshot(cluster))

    assert status.is_rejected
    assert status.message.startswith("parsing pod: ")


@pytest.mark.parametrize("code", [AFFINITY, ANTI, EXISTING])
def test_refusals_are_worded_as_upstream_words_them(code: int) -> None:
    """One sentence a rule."""
    info = a_cluster().templates.info(a_pod())

    assert PLUGIN.refusal(code, CycleState(), info) == REFUSALS[code - 1]


class TestFilterConformance(FilterPluginConformance):
    """The laws of filter plugins."""

    plugin = PLUGIN


class TestScoreConformance(ScorePluginConformance):
    """The laws of score plugins."""

    plugin = PLUGIN


SOME_TERMS = st.lists(st.sampled_from(["web", "db"]), max_size=2, unique=True)


@given(
    st.lists(
        st.tuples(st.sampled_from(["a1", "a2", "b1", "bare"]), st.sampled_from(["web", "db"]), SOME_TERMS),
        min_size=1,
        max_size=6,
    )
)
def test_rivalries_refuse_a_placed_pod_where_the_filter_would(
    drawn: list[tuple[str, str, list[str]]],
) -> None:
    """Its own node, with the pod taken off: by its own terms, and by those of others against it."""
    pods = [
        a_web_pod(f"p{at}", node, app, affinity=far(*map(term, against)))
        for at, (node, app, against) in enumerate(drawn)
    ]
    cluster = a_cluster_of(A | B, *pods)
    for pod in pods:
        info, row = cluster.templates.info(pod), cluster.rows[pod.node_name]
        found = PLUGIN.rivalries(info, Snapshot(cluster))
        refusing = {each.is_own for each in found if each.refused([row], Snapshot(cluster))[0]}
        fork = cluster.fork()
        fork.displace(pod.uid)
        state = CycleState()
        code = OPEN
        if PLUGIN.pre_filter(state, info, Snapshot(fork)).is_success:
            code = int(PLUGIN.filter(state, info, Snapshot(fork))[row])
        assert bool(refusing) == (code in (ANTI, EXISTING))
        assert code != ANTI or True in refusing
        assert code != EXISTING or False in refusing
