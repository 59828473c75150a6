"""Protections: for each a pod that must not be evicted, and a neighbour that may be."""

from typing import Any

import pytest

from promises.streams import NAMESPACE, Stream, a_cluster, a_move, moment
from promises.view import CLASSES, POLICIES, RECORDS

EVICTED = "web-1 was evicted for tidy: "
OURS, UPSTREAMS = "plimsoll.dev/evict", "descheduler.alpha.kubernetes.io/evict"
PREFER_NO = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
MIRROR, SOURCE = "kubernetes.io/config.mirror", "kubernetes.io/config.source"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
WAIVED = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"


def annotated(**annotations: str) -> dict[str, Any]:
    """Changes of an object: annotations."""
    return {"metadata": {"annotations": annotations}}


def evictor(**given: Any) -> dict[str, Any]:
    """Rebalancing with an evictor."""
    return {"evictor": given}


def protections(*disabled: str, extra: list[str] | None = None, **config: Any) -> dict[str, Any]:
    """Rebalancing whose evictor has protections."""
    given: dict[str, Any] = {"defaultDisabled": list(disabled)}
    if extra is not None:
        given["extraEnabled"] = extra
    return evictor(podProtections={**given, **config})


def volume(**source: Any) -> dict[str, Any]:
    """Changes of a pod: a volume."""
    return {"spec": {"volumes": [{"name": "v", **source}]}}


CLAIM = volume(persistentVolumeClaim={"claimName": "data"})
OWNERLESS: dict[str, Any] = {"metadata": {"ownerReferences": []}}
FAILED: dict[str, Any] = {**OWNERLESS, "status": {"phase": "Failed"}}
DAEMON: dict[str, Any] = {"metadata": {"ownerReferences": [{"kind": "DaemonSet", "uid": "uid-web"}]}}
UPSTREAM = {"planner": "Upstream"}
TWO = evictor(minReplicas=2)
OWNERS: dict[str, Any] = {
    "metadata": {
        "ownerReferences": [
            {"kind": "Batch", "uid": "uid-batch"},
            {"kind": "ReplicaSet", "uid": "uid-web", "controller": True},
        ]
    }
}
STARTED: dict[str, Any] = {"status": {"startTime": moment(-200.0)}}


@pytest.mark.parametrize(
    ("pod", "rebalancing", "spec", "reason"),
    [
        pytest.param({}, {}, {}, "", id="unprotected"),
        pytest.param({}, {"mode": "DryRun"}, {}, "the policy is in mode DryRun", id="dry-run"),
        pytest.param({}, {"mode": None}, {}, "the policy is in mode DryRun", id="mode-left-out"),
        pytest.param({}, {}, {"suspend": True}, "the policy moves no pods", id="suspended"),
        pytest.param({}, {"mode": "Approve"}, {}, "the policy is in mode Approve", id="another-mode"),
        # annotations
        pytest.param(annotated(**{OURS: "false"}), {}, {}, f"{OURS} is false", id="ours-false"),
        pytest.param(annotated(**{OURS: "no"}), {}, {}, "", id="ours-another-value"),
        pytest.param(annotated(**{OURS: "false"}), UPSTREAM, {}, f"{OURS} is false", id="ours-upstream"),
        pytest.param(annotated(**{UPSTREAMS: "false"}), {}, {}, f"{UPSTREAMS} is false", id="theirs-false"),
        pytest.param(annotated(**{UPSTREAMS: "false"}), UPSTREAM, {}, "", id="theirs-false-upstream"),
        pytest.param(
            annotated(**{UPSTREAMS: "true", PREFER_NO: ""}),
            evictor(noEvictionPolicy="Mandatory"),
            {},
            "",
            id="theirs-true-waives",
        ),
        pytest.param(
            annotated(**{UPSTREAMS: "true", MIRROR: "x"}), {}, {}, "it is static", id="mirror-is-never-waived"
        ),
        pytest.param(annotated(**{MIRROR: "x"}), {}, {}, "it is static", id="mirror"),
        pytest.param(annotated(**{SOURCE: "file"}), {}, {}, "it is static", id="static"),
        pytest.param(annotated(**{SOURCE: "api"}), {}, {}, "", id="from-the-api"),
        pytest.param(
            annotated(**{"karpenter.sh/do-not-disrupt": "true"}),
            {},
            {},
            "karpenter.sh/do-not-disrupt is true",
            id="karpenter",
        ),
        pytest.param(
            annotated(**{"karpenter.sh/do-not-disrupt": "false"}), {}, {}, "", id="karpenter-allows"
        ),
        pytest.param(
            annotated(**{"karpenter.sh/do-not-disrupt": "true"}), UPSTREAM, {}, "", id="karpenter-upstream"
        ),
        pytest.param(
            annotated(**{PREFER_NO: ""}),
            evictor(noEvictionPolicy="Mandatory"),
            {},
            f"it has {PREFER_NO}",
            id="mandatory",
        ),
        pytest.param(
            annotated(**{PREFER_NO: ""}), evictor(noEvictionPolicy="Preferred"), {}, "", id="preferred"
        ),
        pytest.param({}, evictor(noEvictionPolicy="Mandatory"), {}, "", id="mandatory-not-annotated"),
        pytest.param(
            {"metadata": {"annotations": {UPSTREAMS: "true"}, "ownerReferences": []}},
            UPSTREAM,
            {},
            "",
            id="theirs-true-waives-all-upstream",
        ),
        # kinds of pods
        pytest.param(
            {"spec": {"priority": 2_000_000_000}}, {}, {}, "it is critical for the system", id="critical"
        ),
        pytest.param({"spec": {"priority": 1_999_999_999}}, {}, {}, "", id="nearly-critical"),
        pytest.param(
            {"spec": {"priority": 2_000_000_000}},
            protections("SystemCriticalPods"),
            {},
            "",
            id="critical-off",
        ),
        pytest.param(
            {"spec": {"priority": 5}},
            evictor(priorityThreshold={"value": 5}),
            {},
            "its priority reaches the evictor's threshold",
            id="threshold",
        ),
        pytest.param(
            {"spec": {"priority": 4}}, evictor(priorityThreshold={"value": 5}), {}, "", id="below-threshold"
        ),
        pytest.param(
            {"spec": {"priority": 5}},
            {
                "planner": "Upstream",
                **evictor(
                    priorityThreshold={"value": 5},
                    podProtections={"defaultDisabled": ["SystemCriticalPods"]},
                ),
            },
            {},
            "",
            id="threshold-upstream-goes-with-critical",
        ),
        pytest.param(
            {"spec": {"priority": 5}},
            evictor(
                priorityThreshold={"value": 5}, podProtections={"defaultDisabled": ["SystemCriticalPods"]}
            ),
            {},
            "its priority reaches the evictor's threshold",
            id="threshold-stands-by-itself",
        ),
        pytest.param(
            {"spec": {"priority": 7}},
            evictor(priorityThreshold={"name": "gold"}),
            {},
            "its priority reaches the evictor's threshold",
            id="threshold-by-name",
        ),
        pytest.param(
            {"spec": {"priority": 6}}, evictor(priorityThreshold={"name": "gold"}), {}, "", id="below-gold"
        ),
        pytest.param(
            {"spec": {"priority": -5}},
            evictor(priorityThreshold={"name": "unknown"}),
            {},
            "its priority reaches the evictor's threshold",
            id="threshold-of-no-class",
        ),
        pytest.param(OWNERLESS, {}, {}, "it has no owner", id="bare"),
        pytest.param(OWNERLESS, protections("FailedBarePods"), {}, "it has no owner", id="bare-not-failed"),
        pytest.param(FAILED, {}, {}, "it has no owner", id="failed-bare"),
        pytest.param(FAILED, protections("FailedBarePods"), {}, "", id="failed-bare-allowed"),
        pytest.param(volume(emptyDir={}), {}, {}, "it has local storage", id="empty-dir"),
        pytest.param(volume(hostPath={"path": "/"}), {}, {}, "it has local storage", id="host-path"),
        pytest.param(volume(configMap={}), {}, {}, "", id="config-map"),
        pytest.param(
            volume(emptyDir={}), protections("PodsWithLocalStorage"), {}, "", id="local-storage-allowed"
        ),
        pytest.param(
            {**volume(emptyDir={}), **annotated(**{WAIVED: "u,v"})}, {}, {}, "", id="local-storage-waived"
        ),
        pytest.param(
            {**volume(emptyDir={}), **annotated(**{WAIVED: "u"})},
            {},
            {},
            "it has local storage",
            id="other-storage-waived",
        ),
        pytest.param(
            {**volume(emptyDir={}), **annotated(**{WAIVED: "v"})},
            UPSTREAM,
            {},
            "it has local storage",
            id="nothing-waived-upstream",
        ),
        pytest.param({**volume(emptyDir={}), **annotated(**{SAFE: "true"})}, {}, {}, "", id="safe-to-evict"),
        pytest.param(
            {**volume(emptyDir={}), **annotated(**{SAFE: "true"})},
            UPSTREAM,
            {},
            "it has local storage",
            id="safe-to-evict-upstream",
        ),
        pytest.param(DAEMON, {}, {}, "it is of a DaemonSet", id="daemon-set"),
        pytest.param(DAEMON, protections("DaemonSetPods"), {}, "", id="daemon-set-allowed"),
        pytest.param(CLAIM, {}, {}, "it has a volume claim", id="claim"),
        pytest.param(CLAIM, protections(extra=[]), {}, "", id="claim-allowed"),
        pytest.param(
            CLAIM,
            protections(
                extra=["PodsWithPVC"], config={"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}}
            ),
            {},
            "it has a volume claim",
            id="claim-of-a-protected-class",
        ),
        pytest.param(
            CLAIM,
            protections(
                extra=["PodsWithPVC"], config={"PodsWithPVC": {"protectedStorageClasses": [{"name": "slow"}]}}
            ),
            {},
            "",
            id="claim-of-another-class",
        ),
        pytest.param(
            volume(persistentVolumeClaim={"claimName": "unknown"}),
            protections(
                extra=["PodsWithPVC"], config={"PodsWithPVC": {"protectedStorageClasses": [{"name": "slow"}]}}
            ),
            {},
            "it has a volume claim",
            id="claim-that-is-not-there",
        ),
        pytest.param({}, protections(extra=["PodsWithoutPDB"]), {}, "it has no budget", id="without-budget"),
        pytest.param(
            {"metadata": {"labels": {"app": "covered"}}},
            protections(extra=["PodsWithoutPDB"]),
            {},
            "",
            id="with-budget",
        ),
        pytest.param(
            {"spec": {"resourceClaims": [{"name": "gpu"}]}}, {}, {}, "it has resource claims", id="devices"
        ),
        pytest.param(
            {"spec": {"resourceClaims": [{"name": "gpu"}]}},
            protections(extra=[]),
            {},
            "",
            id="devices-allowed",
        ),
        # labels
        pytest.param(
            {},
            evictor(labelSelector={"matchLabels": {"app": "db"}}),
            {},
            "its labels are not the evictor's",
            id="labels",
        ),
        pytest.param({}, evictor(labelSelector={"matchLabels": {"app": "web"}}), {}, "", id="labels-match"),
        pytest.param(
            {},
            evictor(namespaceLabelSelector={"matchLabels": {"team": "b"}}),
            {},
            "its namespace's labels are not the evictor's",
            id="namespace-labels",
        ),
        pytest.param(
            {},
            evictor(namespaceLabelSelector={"matchLabels": {"team": "a"}}),
            {},
            "",
            id="namespace-labels-match",
        ),
        # replicas
        pytest.param({}, evictor(minReplicas=3), {}, "its owner has 2 pods, 3 must be", id="replicas"),
        pytest.param({}, TWO, {}, "", id="enough-replicas"),
        pytest.param({}, evictor(minReplicas=None), {}, "", id="two-replicas-by-default"),
        pytest.param(
            {"metadata": {"ownerReferences": [{"kind": "A", "uid": "a"}, {"kind": "B", "uid": "b"}]}},
            {**evictor(minReplicas=3), **UPSTREAM},
            {},
            "",
            id="two-owners-have-no-minimum-upstream",
        ),
        pytest.param(OWNERS, TWO, {}, "", id="the-controllers-replicas"),
        pytest.param(OWNERS, evictor(minReplicas=3), {}, "its owner has 2 pods, 3 must be", id="and-too-few"),
        # age, by the operator's clock, which may be a second off: it was bound long ago
        pytest.param({}, evictor(minPodAge="3m"), {}, "", id="bound-long-ago"),
        pytest.param({}, evictor(minPodAge="1h"), {}, "it was 100 s old, 1h must be", id="young"),
        pytest.param({}, evictor(minPodAge="1001s"), {}, "", id="bound-just-long-enough-ago"),
        pytest.param({}, evictor(minPodAge="1002s"), {}, "it was 100 s old, 1002s must be", id="bound-late"),
        pytest.param(STARTED, evictor(minPodAge="1201s"), {}, "", id="started-just-long-enough-ago"),
        pytest.param(
            STARTED, evictor(minPodAge="1202s"), {}, "it was 1200 s old, 1202s must be", id="started-late"
        ),
        pytest.param(
            {"status": {"startTime": None}},
            evictor(minPodAge="1s"),
            {},
            "it has not started",
            id="not-started",
        ),
        # scope
        pytest.param(
            {},
            {},
            {"scope": {"namespaces": {"include": ["shop"]}}},
            "its namespace is not included",
            id="not-included",
        ),
        pytest.param({}, {}, {"scope": {"namespaces": {"include": [NAMESPACE]}}}, "", id="included"),
        pytest.param(
            {},
            {},
            {"scope": {"namespaces": {"exclude": [NAMESPACE]}}},
            "its namespace is excluded",
            id="excluded",
        ),
        pytest.param({}, {}, {"scope": {"namespaces": {"exclude": ["shop"]}}}, "", id="not-excluded"),
        pytest.param(
            {},
            {},
            {"scope": {"namespaces": {"labelSelector": {"matchLabels": {"team": "b"}}}}},
            "its namespace's labels are out of scope",
            id="scope-of-namespaces",
        ),
        pytest.param(
            {},
            {},
            {"scope": {"podSelector": {"matchLabels": {"app": "db"}}}},
            "its labels are out of scope",
            id="scope-of-pods",
        ),
        pytest.param(
            {},
            {},
            {"scope": {"nodeSelector": {"matchLabels": {"pool": "b"}}}},
            "its node is out of scope",
            id="scope-of-nodes",
        ),
        pytest.param(
            {}, {}, {"scope": {"nodeSelector": {"matchLabels": {"pool": "a"}}}}, "", id="node-in-scope"
        ),
        pytest.param(
            {"spec": {"priority": 9}},
            {},
            {"scope": {"priorityThreshold": {"value": 9}}},
            "its priority is out of scope",
            id="scope-of-priorities",
        ),
        pytest.param(
            {"spec": {"priority": 8}},
            {},
            {"scope": {"priorityThreshold": {"value": 9}}},
            "",
            id="priority-in-scope",
        ),
        pytest.param(
            {"spec": {"schedulerName": "other"}}, {}, {}, "another scheduler places it", id="other-scheduler"
        ),
        pytest.param(
            {"spec": {"schedulerName": "other"}},
            {},
            {"scope": {"otherSchedulers": ["other"]}},
            "",
            id="other-scheduler-in-scope",
        ),
    ],
)
def test_what_protects_a_pod(
    pod: dict[str, Any], rebalancing: dict[str, Any], spec: dict[str, Any], reason: str
) -> None:
    """By the policy, the pod, its namespace and its node."""
    stream = a_protected(pod, rebalancing, spec)
    a_move(stream)

    assert stream.said == ([EVICTED + reason] if reason else [])


def a_protected(pod: dict[str, Any], rebalancing: dict[str, Any], spec: dict[str, Any]) -> Stream:
    """A cluster in which web-1 and its policy have been like this for a while."""
    stream = a_cluster()
    stream.change("namespaces", NAMESPACE, {"metadata": {"labels": {"team": "a"}}})
    stream.change("nodes", "n1", {"metadata": {"labels": {"pool": "a"}}})
    stream.put(CLASSES, {"metadata": {"name": "gold"}, "value": 7})
    claim = {"metadata": {"name": "data", "namespace": NAMESPACE}, "spec": {"storageClassName": "fast"}}
    stream.put("persistentvolumeclaims", claim)
    stream.budget(0, selector={"matchLabels": {"app": "covered"}})
    stream.budget(0, "shop")
    status = {"startTime": moment(900.0), **pod.get("status", {})}
    stream.change("pods", "web-1", {**pod, "status": status})
    stream.policy(rebalancing=rebalancing, **spec)
    stream.wait(900.0)
    stream.lead()
    return stream


def test_a_record_made_by_hand_counts_for_nothing_next_to_the_operators_own() -> None:
    """It says Evicting and another mode, of the very pod that the operator evicts for a reason of its own."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned", "Evicting"))
    spec = {**stream.get(RECORDS, "move-web-1")["spec"], "mode": "DryRun"}
    forged = {"name": "forged", "namespace": NAMESPACE, "uid": "uid-forged"}
    stream.put(RECORDS, {"metadata": forged, "spec": spec, "status": {"phase": "Evicting"}})
    stream.evict("web-1")

    assert stream.said == []


def test_a_deleted_policy_moves_nothing() -> None:
    """Nor does one that only places pods."""
    stream = a_cluster()
    stream.delete(POLICIES, "tidy")
    stream.wait(31.0)
    stream.lead()
    a_move(stream)
    stream.pod("web-3", "n1", ready=True)
    a_move(stream, "web-3", policy="serve", owner=None)

    assert stream.said == [
        EVICTED + "its policy did not exist",
        "web-3 was evicted for serve: the policy moves no pods",
    ]


@pytest.mark.parametrize(("changed_s", "reason"), [(30.0, "the policy moves no pods"), (29.0, "")])
def test_who_decides_sees_the_policy_of_half_a_minute_ago(changed_s: float, reason: str) -> None:
    """A change that a watch may not have shown yet does not count."""
    stream = a_cluster()
    stream.policy(suspend=True)
    stream.wait(changed_s)
    a_move(stream)

    assert stream.said == ([EVICTED + reason] if reason else [])


@pytest.mark.parametrize(("changed_s", "said"), [(30.0, [EVICTED + f"{OURS} is false"]), (29.0, [])])
def test_who_decides_sees_the_pod_of_half_a_minute_ago(changed_s: float, said: list[str]) -> None:
    """It was annotated since."""
    stream = a_cluster()
    stream.change("pods", "web-1", annotated(**{OURS: "false"}))
    stream.wait(changed_s)
    stream.lead()
    a_move(stream)

    assert stream.said == said


def test_a_young_pod_of_an_old_cluster_is_young() -> None:
    """Its age counts from its binding."""
    stream = a_cluster()
    stream.policy(rebalancing=evictor(minPodAge="1h"))
    stream.wait(5000.0)
    stream.pod("web-3", "n1", ready=True)
    stream.wait(100.0)
    stream.lead()
    a_move(stream, "web-3")

    assert stream.said == ["web-3 was evicted for tidy: it was 100 s old, 1h must be"]


def test_a_policy_that_is_edited_in_mid_run_calls_nothing_back() -> None:
    """The record was written before; the eviction comes long after."""
    stream = a_cluster()
    name = stream.record("web-1", phases=("Planned",))
    stream.policy(suspend=True)
    stream.wait(600.0)
    stream.lead()
    stream.enter(name, "Evicting")
    stream.evict("web-1")

    assert stream.said == []


def test_a_spec_that_cannot_be_used_leaves_the_last_one_in_force() -> None:
    """However old that is."""
    stream = a_cluster()
    bad = stream.policy(suspend=True)
    bad["status"]["conditions"][0]["status"] = "False"
    stream.wait(600.0)
    stream.lead()
    a_move(stream)

    assert stream.said == []


def test_the_last_spec_that_could_be_used_was_in_force_until_the_next() -> None:
    """A watch may not have shown the next one yet."""
    stream = a_cluster()
    bad = stream.policy(suspend=True)
    bad["status"]["conditions"][0]["status"] = "False"
    stream.wait(600.0)
    stream.policy(suspend=True)
    stream.wait(29.0)
    stream.lead()
    a_move(stream)

    assert stream.said == []


@pytest.mark.parametrize(("value", "said"), [("true", []), ("false", [EVICTED + "it is not approved"])])
def test_a_proposal_needs_a_yes(value: str, said: list[str]) -> None:
    """In the annotation of its record."""
    stream = a_cluster()
    stream.policy(rebalancing={"mode": "Approve"})
    stream.wait(60.0)
    stream.lead()
    name = stream.record("web-1", phases=("Planned",), mode="Approve")
    stream.change("evictions.plimsoll.dev", name, annotated(**{"plimsoll.dev/approved": value}))
    stream.enter(name, "Evicting")
    stream.evict("web-1")

    assert stream.said == said


@pytest.mark.parametrize(
    ("ago_s", "said"), [(29.0, []), (30.0, []), (31.0, [EVICTED + "it is not approved"])]
)
def test_an_approval_that_was_just_taken_back_may_not_be_known(ago_s: float, said: list[str]) -> None:
    """A watch may be half a minute behind; one that was never given is no approval."""
    stream = a_cluster()
    stream.policy(rebalancing={"mode": "Approve"})
    stream.wait(60.0)
    stream.lead()
    name = stream.record("web-1", phases=("Planned",), mode="Approve")
    stream.change("evictions.plimsoll.dev", name, annotated(**{"plimsoll.dev/approved": "true"}))
    stream.change("evictions.plimsoll.dev", name, annotated(**{"plimsoll.dev/approved": "false"}))
    stream.wait(ago_s)
    stream.lead()
    stream.enter(name, "Evicting")
    stream.evict("web-1")

    assert [each for each in stream.said if "approved" in each] == said


def test_a_namespace_may_forbid_evictions() -> None:
    """By the annotation that pods may have."""
    stream = a_cluster()
    stream.change("namespaces", NAMESPACE, annotated(**{OURS: "false"}))
    stream.wait(31.0)
    stream.lead()
    a_move(stream)

    assert stream.said == [EVICTED + f"{OURS} is false"]


def test_the_only_pod_that_is_ready_stays() -> None:
    """Where two replicas are wanted; planner Upstream does not ask, nor is a pod asked that is not ready."""
    stream = a_cluster()
    stream.policy(rebalancing=TWO)
    stream.policy("upstream", {**TWO, **UPSTREAM})
    stream.pod("web-3", "n1")
    stream.change("pods", "web-2", {"status": {"conditions": []}})
    stream.wait(31.0)
    stream.lead()
    a_move(stream, "web-2", owner=None)
    a_move(stream, "web-1", owner=None)
    stream.pod("web-4", "n1", ready=True)
    stream.wait(31.0)
    stream.lead()
    a_move(stream, "web-4", policy="upstream", owner=None)

    assert stream.said == [EVICTED + "it is the only one that is ready"]


def test_replicas_that_have_no_node_count() -> None:
    """As descheduler counts; two of the three are ready."""
    stream = a_cluster()
    stream.policy(rebalancing=evictor(minReplicas=3))
    stream.pod("web-3", "")
    stream.wait(31.0)
    stream.lead()
    a_move(stream, "web-1", owner=None)

    assert stream.said == []


def test_strategies_of_upstream_may_have_evictors_of_their_own() -> None:
    """In place of the policy's; the policy's counts where the strategy occurs without one as well."""
    strict, lax = evictor(minReplicas=9)["evictor"], evictor(minReplicas=0)["evictor"]
    named = {"name": "RemoveDuplicates"}
    stream = a_cluster()
    for name, shared, strategies in (
        ("own-lax", strict, [{**named, "evictor": lax}]),
        ("own-strict", lax, [{**named, "evictor": strict}]),
        ("both", lax, [{**named, "evictor": strict}, named]),
        ("none", strict, [{"name": "PodLifeTime", "evictor": lax}, named]),
    ):
        stream.policy(name, {**UPSTREAM, "evictor": shared, "strategies": strategies})
    stream.wait(60.0)
    stream.lead()
    for number, name in enumerate(("own-lax", "own-strict", "both", "none")):
        stream.pod(f"p-{number}", "n1", ready=True, owner=f"o-{number}")
        a_move(stream, f"p-{number}", policy=name, owner={"uid": f"uid-o-{number}"})

    assert stream.said == [
        "p-1 was evicted for own-strict: its owner has 1 pods, 9 must be",
        "p-3 was evicted for none: its owner has 1 pods, 9 must be",
    ]


def test_victims_of_preemption_are_not_asked_about() -> None:
    """Priorities and budgets protect them."""
    stream = a_cluster()
    stream.change("pods", "web-1", annotated(**{OURS: "false"}))
    stream.pod("important", spec={"priority": 10})
    stream.wait(31.0)
    stream.lead()
    a_move(stream, strategy="DefaultPreemption", policy="serve")

    assert stream.said == []


def test_what_is_deleted_is_no_eviction() -> None:
    """Nor is a request that a pod leave which lets none go: it was leaving already."""
    stream = a_cluster()
    stream.pod("important", spec={"priority": 10})
    for name in ("web-1", "web-2"):
        stream.change("pods", name, annotated(**{OURS: "false"}))
    stream.wait(31.0)
    stream.lead()
    why = {"status": {"conditions": [{"type": "DisruptionTarget"}]}}
    stream.record("web-1", phases=("Planned", "Evicting"))
    stream.change("pods", "web-1", why, stream.by())
    stream.delete("pods", "web-1", stream.by(f"/api/v1/namespaces/{NAMESPACE}/pods/web-1", method="DELETE"))
    stream.record("web-2", phases=("Planned", "Evicting"))
    stream.change("pods", "web-2", {"metadata": {"deletionTimestamp": "now"}})
    stream.evict("web-2")

    assert stream.said == []


@pytest.mark.parametrize(("gone_s", "said"), [(29.0, []), (30.0, [EVICTED + "another scheduler places it"])])
def test_a_scheduler_name_that_was_served_lately_counts(gone_s: float, said: list[str]) -> None:
    """Until every watch has shown that its policy is gone."""
    stream = a_cluster()
    stream.delete(POLICIES, "serve")
    stream.wait(gone_s)
    a_move(stream)

    assert stream.said == said
