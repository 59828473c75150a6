"""PodTopologySpread, against upstream's own arithmetic and the conformance laws."""

from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.framework import SKIP, SUCCESS, CycleState, Snapshot
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import LabelMapSpec, Service
from plimsoll.model.selectors import selector_of_labels
from plimsoll.plugins.pod_topology_spread import (
    FEW_DOMAINS,
    LABEL_MISSING,
    SKEWED,
    PodTopologySpread,
    PodTopologySpreadArgs,
)
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.conformance import FilterPluginConformance, ScorePluginConformance
from plimsoll.toolkit.scheduling.topology_spread import default_selector

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PLUGIN = PodTopologySpread(PodTopologySpreadArgs())
OPEN, SKEW, LABEL = 0, 2, 1


def spread(key: str = ZONE, skew: int = 1, when: str = "DoNotSchedule", **more: Any) -> dict[str, Any]:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


def zoned(**zones: Any) -> list[Node]:
    """Named nodes, each in a zone; None for a node without one."""
    return [a_node(name, labels={ZONE: zone} if zone else {}) for name, zone in zones.items()]


def placed(**counts: Any) -> list[Pod]:
    """As many pods of ``web`` on each node."""
    return [
        a_pod(f"{node}-{number}", node=node, labels={"app": "web"})
        for node, count in counts.items()
        for number in range(count)
    ]


def a_web_pod(*constraints: dict[str, Any], **more: Any) -> Pod:
    return a_pod("incoming", labels={"app": "web"}, topologySpreadConstraints=list(constraints), **more)


def codes(cluster: Cluster, pod: Pod, plugin: PodTopologySpread = PLUGIN) -> Any:
    state, info, snapshot = CycleState(), cluster.templates.info(pod), Snapshot(cluster)
    assert plugin.pre_filter(state, info, snapshot) == SUCCESS
    return plugin.filter(state, info, snapshot).tolist()


def points(cluster: Cluster, pod: Pod, plugin: PodTopologySpread = PLUGIN) -> tuple[list[int], ...]:
    """Raw and normalised points of all nodes."""
    state, info, snapshot = CycleState(), cluster.templates.info(pod), Snapshot(cluster)
    assert plugin.pre_score(state, info, snapshot) == SUCCESS
    raw = plugin.score(state, info, snapshot)
    return raw.tolist(), plugin.normalize(state, info, raw).tolist()


@pytest.mark.parametrize(
    ("zones", "counts", "constraint", "expected"),
    [
        pytest.param(
            # zone a: 2 + 1 - 0 = 3 > 1; zone b: 0 + 1 - 0 = 1
            {"n1": "a", "n2": "b"},
            {"n1": 2},
            spread(),
            [SKEW, OPEN],
            id="skewed-zone",
        ),
        pytest.param(
            # two domains are fewer than three, so the least is 0: 1 + 1 - 0 = 2 > 1 in both
            {"n1": "a", "n2": "b"},
            {"n1": 1, "n2": 1},
            spread(minDomains=3),
            [SKEW, SKEW],
            id="few-domains",
        ),
        pytest.param(
            # 1 + 1 - 1 = 1
            {"n1": "a", "n2": "b"},
            {"n1": 1, "n2": 1},
            spread(minDomains=2),
            [OPEN, OPEN],
            id="enough-domains",
        ),
        pytest.param(
            {"n1": "a", "n2": None},
            {"n1": 0, "n2": 3},
            spread(),
            [OPEN, LABEL],
            id="node-without-zone",
        ),
        pytest.param(
            # a: 2 over n1 and n2
            {"n1": "a", "n2": "a", "n3": "b"},
            {"n1": 1, "n2": 1},
            spread(),
            [SKEW, SKEW, OPEN],
            id="zone-of-two",
        ),
        pytest.param(
            {"n1": "a", "n2": "b"},
            # the selector of every pod: 5 + 1 - 0
            {"n1": 5},
            spread(labelSelector={}),
            [SKEW, OPEN],
            id="empty-selector",
        ),
        pytest.param(
            # no pod is counted and the pod does not match itself: 0 + 0 - 0
            {"n1": "a", "n2": "b"},
            {"n1": 5},
            spread(labelSelector=None),
            [OPEN, OPEN],
            id="no-selector",
        ),
        pytest.param(
            {"n1": "a", "n2": "b"},
            {"n1": 3},
            spread(skew=4),
            [OPEN, OPEN],
            id="skew-allowed",
        ),
    ],
)
def test_hard_constraints_refuse_nodes_by_skew(
    zones: dict[str, Any], counts: dict[str, int], constraint: dict[str, Any], expected: list[int]
) -> None:
    """Each case states its arithmetic: counts + the pod itself - the least."""
    cluster = a_cluster(zoned(**zones), placed(**counts))

    assert codes(cluster, a_web_pod(constraint)) == expected


def test_the_first_constraint_that_fails_is_named() -> None:
    """A missing label of a later constraint does not hide the skew of an earlier one."""
    cluster = a_cluster(zoned(n1="a", n2="b"), placed(n1=2))
    pod = a_web_pod(spread(), spread(key="rack"))

    # No node has both keys, so no domain exists and the least is 0; nothing is counted either.
    assert codes(cluster, pod) == [LABEL, LABEL]


def test_terminating_pods_and_other_namespaces_are_not_counted() -> None:
    """Only living pods of the pod's own namespace weigh."""
    leaving = a_pod(
        "leaving", node="n1", labels={"app": "web"}, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}
    )
    foreign = a_pod("foreign", namespace="other", node="n1", labels={"app": "web"})
    cluster = a_cluster(zoned(n1="a", n2="b"), [leaving, foreign])

    assert codes(cluster, a_web_pod(spread())) == [OPEN, OPEN]


def test_match_label_keys_narrow_the_selector() -> None:
    """Only pods of the same revision count."""
    old = [a_pod(f"old-{n}", node="n1", labels={"app": "web", "rev": "1"}) for n in range(3)]
    cluster = a_cluster(zoned(n1="a", n2="b"), old)
    pod = a_pod(
        "incoming",
        labels={"app": "web", "rev": "2"},
        topologySpreadConstraints=[spread(matchLabelKeys=["rev", "absent"])],
    )

    assert codes(cluster, pod) == [OPEN, OPEN]


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        # ssd is only in zone a, which holds 2: the only domain, so the least is 2 and 2 + 1 - 2 = 1 fits.
        pytest.param({}, [OPEN, OPEN], id="affinity-honoured"),
        # Both zones count: 2 + 1 - 0 > 1.
        pytest.param({"nodeAffinityPolicy": "Ignore"}, [SKEW, OPEN], id="affinity-ignored"),
    ],
)
def test_inclusion_policies_decide_which_nodes_make_domains(
    policies: dict[str, Any], expected: list[int]
) -> None:
    """A zone that the pod's node selector excludes is no domain, unless the policy says so."""
    nodes = [a_node("n1", labels={ZONE: "a", "disk": "ssd"}), a_node("n2", labels={ZONE: "b"})]
    cluster = a_cluster(nodes, placed(n1=2))

    assert codes(cluster, a_web_pod(spread(**policies), node_selector={"disk": "ssd"})) == expected


def test_the_taints_policy_excludes_nodes_when_honoured() -> None:
    """A tainted node's empty zone is not the least any more."""
    nodes = [*zoned(n1="a"), a_node("n2", labels={ZONE: "b"}, taints=["x:NoSchedule"])]
    cluster = a_cluster(nodes, placed(n1=2))

    assert codes(cluster, a_web_pod(spread())) == [SKEW, OPEN]
    assert codes(cluster, a_web_pod(spread(nodeTaintsPolicy="Honor"))) == [OPEN, OPEN]


def test_counts_follow_every_pod() -> None:
    """Placing, moving and removing pods changes the answer immediately."""
    cluster = a_cluster(zoned(n1="a", n2="b"))
    pod = a_web_pod(spread())
    assert codes(cluster, pod) == [OPEN, OPEN]

    first = cluster.templates.info(placed(n1=1)[0])
    cluster.place(first, "n1")
    assert codes(cluster, pod) == [SKEW, OPEN]

    cluster.place(first, "n2")
    assert codes(cluster, pod) == [OPEN, SKEW]

    cluster.displace(first.uid)
    assert codes(cluster, pod) == [OPEN, OPEN]


def test_a_simulated_pod_that_terminates_counts_though_the_kept_counts_leave_it_out() -> None:
    """Upstream counts terminating pods when they are added or removed in a simulation, and only then."""
    leaving = a_pod(
        "leaving", node="n1", labels={"app": "web"}, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}
    )
    cluster = a_cluster(zoned(n1="a", n2="b"), [*placed(n1=1, n2=1), leaving])
    state, info = CycleState(), cluster.templates.info(a_web_pod(spread()))
    assert PLUGIN.pre_filter(state, info, Snapshot(cluster)) == SUCCESS
    before = PLUGIN.filter(state, info, Snapshot(cluster)).tolist()
    copy = state.clone()
    other = cluster.templates.info(leaving)
    cluster.displace(other.uid)

    PLUGIN.remove_pod(state, info, other, 0, Snapshot(cluster))

    # a: 1 - 1 = 0 is the least now; b: 1 + 1 - 0 = 2 > 1.
    assert before == [OPEN, OPEN]
    assert PLUGIN.filter(state, info, Snapshot(cluster)).tolist() == [OPEN, SKEW]
    assert PLUGIN.filter(copy, info, Snapshot(cluster)).tolist() == [OPEN, OPEN]


@pytest.mark.parametrize(
    ("skew", "raw", "final"),
    [
        # ln(4 + 2) = 1.79: 2, 1, 0, 3 pods weigh 3.58, 1.79, 0, 5.38, plus skew - 1
        pytest.param(1, [4, 2, 0, 5], [20, 60, 100, 0], id="skew-1"),
        pytest.param(2, [5, 3, 1, 6], [33, 66, 100, 16], id="skew-2"),
    ],
)
def test_soft_constraints_score_hosts_by_their_own_pods(skew: int, raw: list[int], final: list[int]) -> None:
    """Upstream's worked example."""
    cluster = a_cluster([a_node(f"n{n}") for n in range(4)], placed(n0=2, n1=1, n3=3))
    pod = a_web_pod(spread(key=HOST, skew=skew, when="ScheduleAnyway"))

    assert points(cluster, pod) == (raw, final)


def test_soft_constraints_score_zones_by_the_zone() -> None:
    """Weight ln 4: round(3 * 1.386) = 4 and round(1.386) = 1; 100 * (4 + 1 - 4) // 4 = 25."""
    cluster = a_cluster(zoned(a1="a", a2="a", b1="b", b2="b"), placed(a1=2, a2=1, b1=1))
    pod = a_web_pod(spread(when="ScheduleAnyway"))

    assert points(cluster, pod) == ([4, 4, 1, 1], [25, 25, 100, 100])


def test_a_node_without_a_required_key_scores_nothing() -> None:
    """With constraints of its own the pod ignores such nodes; the others are weighed without them."""
    cluster = a_cluster(zoned(n1="a", n2=None), placed(n1=1))

    assert points(cluster, a_web_pod(spread(when="ScheduleAnyway"))) == ([1, 0], [100, 0])


def a_service(**selector: Any) -> Service:
    return Service(metadata=ObjectMeta(name="s", namespace="default"), spec=LabelMapSpec(selector=selector))


def test_the_built_in_defaults_spread_the_pods_of_a_service() -> None:
    """Hosts at 3 and zones at 5; no constraint without a Service or controller that selects the pod."""
    cluster = a_cluster(zoned(n1="a", n2="b", n3=None), placed(n1=2))
    pod = a_web_pod()
    info, snapshot = cluster.templates.info(pod), Snapshot(cluster)
    assert PLUGIN.pre_score(CycleState(), info, snapshot) == SKIP

    cluster.objects.services["default/s"] = a_service(app="web")
    cluster.objects.version += 1

    # hosts: 2 * ln 5 + 2, 0 + 2, 0 + 2; zones: 2 * ln 5 + 4 (a, b and "" are three), 0 + 4, none
    assert points(cluster, pod) == ([12, 6, 2], [16, 66, 100])
    assert PLUGIN.pre_filter(CycleState(), info, snapshot) == SKIP


@pytest.mark.parametrize(
    ("selectors", "found"),
    [
        ([{"app": "web"}], {"app": "web"}),
        ([{"app": "web", "tier": "front"}], {"app": "web", "tier": "front"}),
        ([{"app": "web", "tier": "back"}], {}),
        ([{"app": "db", "tier": "front"}], {}),
        ([{"app": "web"}, {"tier": "front"}], {"app": "web", "tier": "front"}),
        ([{"app": "web"}, {"app": "web", "tier": "back"}], {"app": "web"}),
        ([{}], {}),
    ],
)
def test_the_services_whose_every_label_a_pod_has_select_it(selectors: Any, found: dict[str, str]) -> None:
    """A Service without a selector selects none."""
    cluster = a_cluster(zoned(n1="a"))
    for at, each in enumerate(selectors):
        cluster.objects.services[f"default/s{at}"] = a_service(**each)
    info = cluster.templates.info(a_pod("p", labels={"app": "web", "tier": "front"}, owner=""))

    assert default_selector(info.template, cluster.objects) == selector_of_labels(found)


def test_a_zone_without_a_name_is_the_zone_of_nodes_without_one() -> None:
    """The built-in defaults count both together, and score only the node that has the label."""
    nodes = [a_node("n1", labels={ZONE: ""}), *zoned(n2=None, n3=None, n4="a")]
    cluster = a_cluster(nodes, placed(n2=2, n3=1, n4=1))
    cluster.objects.services["default/s"] = a_service(app="web")
    cluster.objects.version += 1

    # hosts: count * ln 6 + 2; zones: 3 * ln 4 + 4 for "", 1 * ln 4 + 4 for a, nothing without the label
    assert points(cluster, a_web_pod())[0] == [10, 6, 4, 9]


def test_default_constraints_may_say_how_many_domains_there_are_to_be_and_what_makes_one() -> None:
    """Their other fields mean what they mean in a pod."""

    def judged(**more: Any) -> Any:
        constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **more}
        args = {"defaultingType": "List", "defaultConstraints": [constraint]}
        return codes(cluster, a_web_pod(), PodTopologySpread(PodTopologySpreadArgs.model_validate(args)))

    tainted = a_node("n3", labels={ZONE: "c"}, taints=("dedicated:NoSchedule",))
    cluster = a_cluster([*zoned(n1="a", n2="b"), tainted], placed(n1=1, n2=1))
    cluster.objects.services["default/s"] = a_service(app="web")

    assert judged() == [SKEW, SKEW, OPEN]
    assert judged(nodeTaintsPolicy="Honor") == [OPEN, OPEN, OPEN]
    assert judged(nodeTaintsPolicy="Honor", minDomains=3) == [SKEW, SKEW, OPEN]


def test_a_list_of_defaults_may_refuse_nodes() -> None:
    """With defaultingType List the constraints are the administrator's, hard ones included."""
    plugin = PodTopologySpread(
        PodTopologySpreadArgs.model_validate(
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
                ],
            }
        )
    )
    cluster = a_cluster(zoned(n1="a", n2="b"), placed(n1=2))
    cluster.objects.services["default/s"] = a_service(app="web")

    assert codes(cluster, a_web_pod(), plugin) == [SKEW, OPEN]


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (
            {
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            "must be empty unless defaultingType is List",
        ),
        (
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": skew, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
                    for skew in (1, 2)
                ],
            },
            "two have the same topologyKey",
        ),
        (
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 1, "topologyKey": "a b", "whenUnsatisfiable": "DoNotSchedule"}
                ],
            },
            "is not a label key",
        ),
    ],
    ids=["with-system", "twice", "bad-key"],
)
def test_defaults_that_mean_nothing_are_refused(args: dict[str, Any], complaint: str) -> None:
    """As upstream validates them."""
    with pytest.raises(ValidationError, match=complaint):
        PodTopologySpreadArgs.model_validate(args)


def test_refusals_are_worded_as_upstream_words_them() -> None:
    """Skew can be resolved by removing pods, a missing label cannot."""
    info = a_cluster().templates.info(a_pod())

    assert PLUGIN.refusal(LABEL, CycleState(), info) == LABEL_MISSING
    assert PLUGIN.refusal(SKEW, CycleState(), info) == SKEWED


class TestFilterConformance(FilterPluginConformance):
    """The laws of filter plugins."""

    plugin = PLUGIN


class TestScoreConformance(ScorePluginConformance):
    """The laws of score plugins."""

    plugin = PLUGIN


def test_nodes_without_a_required_key_have_no_points_of_other_constraints() -> None:
    """Neither before nor after they are normalised: a node of a zone, without the rack that is asked for."""
    rack = "example.com/rack"
    nodes = [a_node("n1", labels={ZONE: "a", rack: "r"}), a_node("n2", labels={ZONE: "b"})]
    cluster = a_cluster(nodes, placed(n1=1, n2=3))
    pod = a_web_pod(spread(ZONE, 3, "ScheduleAnyway"), spread(rack, 3, "ScheduleAnyway"))

    raw, normalised = points(cluster, pod)

    assert raw[0] > 0
    assert (raw[1], normalised[1]) == (0, 0)


@pytest.mark.parametrize(
    ("zones", "is_kept"),
    [pytest.param(2, True, id="few-domains"), pytest.param(FEW_DOMAINS + 2, False, id="many-domains")],
)
def test_a_version_stays_while_no_domain_crosses_its_limit(zones: int, is_kept: bool) -> None:
    """So what is known of a template is not asked again; of many domains no version is made."""
    nodes = [a_node(f"n{at}", labels={ZONE: f"z{at % zones}"}) for at in range(2 * zones)]
    cluster = a_cluster(nodes, placed(n0=1, n1=1))
    info = cluster.templates.info(a_web_pod(spread(skew=5)))
    before = PLUGIN.result_version(info.template, Snapshot(cluster))
    for more in placed(n0=2)[1:]:
        cluster.place(cluster.templates.info(more), "n0")
    after = PLUGIN.result_version(info.template, Snapshot(cluster))

    assert (before is not None and before == after) is is_kept
    for more in placed(n0=9)[2:]:
        cluster.place(cluster.templates.info(more), "n0")
    assert before is None or PLUGIN.result_version(info.template, Snapshot(cluster)) != before
