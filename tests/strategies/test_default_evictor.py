"""DefaultEvictor: every protection alone, on and off, in both spellings, and our safer defaults."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.framework.descheduling import CannotJudgeError
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.storage import PersistentVolumeClaim
from plimsoll.model.kinds.workload import Namespace, PodDisruptionBudget, PriorityClass
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.disruption_signals import EVICT
from plimsoll.toolkit.descheduling.protections import duration
from strategies.builders import NOW, a_context, an_evictor

OPT_OUT = "descheduler.alpha.kubernetes.io/prefer-no-eviction"


def a_claim(storage_class: str | None) -> dict[str, Any]:
    document = {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": storage_class},
    }
    return {"claims": {"default/data": convert(PersistentVolumeClaim, document)}}


def a_budget(selector: dict[str, Any] | None) -> dict[str, Any]:
    document = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": selector}}
    return {"budgets": {"default/web": convert(PodDisruptionBudget, document)}}


def a_class(value: int) -> dict[str, Any]:
    return {
        "priority_classes": {"high": convert(PriorityClass, {"metadata": {"name": "high"}, "value": value})}
    }


def a_volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


CLAIMED = a_volume(persistentVolumeClaim={"claimName": "data"})
DISABLED = "defaultDisabled"
ENABLED = "extraEnabled"


def refused(
    args: dict[str, Any],
    pod_args: dict[str, Any],
    *,
    exact: bool = True,
    objects: dict[str, Any] | None = None,
    others: list[Pod] | tuple[Any, ...] = (),
) -> str:
    """The machine reason that protects the pod, "" when nothing does."""
    evictor = an_evictor(**args)
    pod = a_pod("p", node="n1", **{"owner": "ReplicaSet/web", **pod_args})
    context = a_context(
        [a_node("n1"), a_node("n2")], [pod, *others], evictor=evictor, exact=exact, objects=objects
    )
    refusal = evictor.filter(context.cluster.pods[pod.uid], context)
    return refusal.reason if refusal else ""


@pytest.mark.parametrize(
    ("protection", "legacy", "pod"),
    [
        ("SystemCriticalPods", "evictSystemCriticalPods", {"priority": 2_000_000_000}),
        ("PodsWithLocalStorage", "evictLocalStoragePods", a_volume(emptyDir={})),
        ("PodsWithLocalStorage", "evictLocalStoragePods", a_volume(hostPath={"path": "/"})),
        ("DaemonSetPods", "evictDaemonSetPods", {"owner": "DaemonSet/ds"}),
        ("FailedBarePods", "evictFailedBarePods", {"owner": "", "status": {"phase": "Failed"}}),
    ],
)
def test_default_protections_are_on_until_disabled(protection: str, legacy: str, pod: dict[str, Any]) -> None:
    """Disabled in the list of names or by the deprecated boolean."""
    if pod.get("status"):
        pod = {"owner": ""}  # a failed pod holds no place; the bare running one is asked about below
        assert refused({}, pod) == protection
        return

    assert refused({}, pod) == protection
    assert refused({"podProtections": {DISABLED: [protection]}}, pod) == ""
    assert refused({legacy: True}, pod) == ""


def test_bare_pods_go_only_when_they_have_failed() -> None:
    """Switching the protection off does not make running bare pods evictable."""
    evictor = an_evictor(podProtections={DISABLED: ["FailedBarePods"]})
    failed = a_pod("p", node="n1", status={"phase": "Failed"})
    context = a_context([a_node("n1")], [failed], evictor=evictor)

    assert evictor.filter(context.cluster.templates.info(failed), context) is None
    assert refused({"podProtections": {DISABLED: ["FailedBarePods"]}}, {"owner": ""}) == "FailedBarePods"


@pytest.mark.parametrize(
    ("protection", "legacy", "pod"),
    [
        ("PodsWithPVC", "ignorePvcPods", CLAIMED),
        ("PodsWithoutPDB", "ignorePodsWithoutPDB", {}),
        ("PodsWithResourceClaims", None, {"resourceClaims": [{"name": "gpu"}]}),
    ],
)
def test_extra_protections_are_off_until_enabled(
    protection: str, legacy: str | None, pod: dict[str, Any]
) -> None:
    """Enabled in the list of names, or by the deprecated boolean where it exists."""
    assert refused({}, pod) == ""
    assert refused({"podProtections": {ENABLED: [protection]}}, pod) == protection
    if legacy:
        assert refused({legacy: True}, pod) == protection


@pytest.mark.parametrize(
    ("storage_class", "protected"),
    [("fast", True), ("slow", False), ("", True), (None, True)],
)
def test_claims_may_be_protected_by_class(storage_class: str | None, protected: bool) -> None:
    """A listed class protects, another does not; no class, or no claim, protects."""
    config = {"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}}
    args = {"podProtections": {ENABLED: ["PodsWithPVC"], "config": config}}

    assert refused(args, CLAIMED, objects=a_claim(storage_class)) == ("PodsWithPVC" if protected else "")
    assert refused(args, CLAIMED) == "PodsWithPVC"


def test_other_volumes_are_no_claims() -> None:
    """A projected volume, say."""
    assert refused({"podProtections": {ENABLED: ["PodsWithPVC"]}}, a_volume()) == ""


@pytest.mark.parametrize(
    ("selector", "covered"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({}, True),
        (None, False),
        ({"matchExpressions": [{"key": "a", "operator": "Bogus"}]}, False),
    ],
)
def test_a_budget_covers_what_its_selector_matches(selector: dict[str, Any] | None, covered: bool) -> None:
    """None matches nothing, an empty one everything, a malformed one nothing."""
    args = {"podProtections": {ENABLED: ["PodsWithoutPDB"]}}
    reason = refused(args, {"labels": {"app": "web"}}, objects=a_budget(selector))

    assert reason == ("" if covered else "PodsWithoutPDB")


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, "MirrorPod"),
        ({"annotations": {"kubernetes.io/config.source": "file"}}, "StaticPod"),
        ({"annotations": {"kubernetes.io/config.source": "api"}}, ""),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "Terminating"),
    ],
)
def test_some_pods_are_never_evictable(pod: dict[str, Any], reason: str) -> None:
    """Mirror, static and terminating pods; the evict annotation admits them upstream, and not here."""
    annotations = {**pod.get("annotations", {}), EVICT: "true"}
    admitted = {**pod, "annotations": annotations}
    if "metadata" in pod:
        admitted = {"metadata": {**pod["metadata"], "annotations": annotations}}

    assert refused({}, pod) == reason
    assert refused({}, admitted) == ""
    assert refused({}, admitted, exact=False) == reason


@pytest.mark.parametrize("exact", [True, False])
def test_pods_whose_binding_is_on_its_way_stay(*, exact: bool) -> None:
    """They count on their node and do not run: an eviction would end them before they began."""
    context = a_context([a_node("n1"), a_node("n2")], [], evictor=an_evictor(), exact=exact)
    assumed = context.cluster.templates.info(a_pod("p", owner="ReplicaSet/web", annotations={EVICT: "true"}))
    context.cluster.place(assumed, "n1")

    refusal = an_evictor().filter(assumed, context)

    assert refusal is not None
    assert refusal.reason == "NotBound"


def test_an_invitation_must_say_so() -> None:
    """Upstream takes evict: "false" for an invitation; here it forbids the eviction."""
    daemon = {"owner": "DaemonSet/ds"}

    for value, safe in (("true", ""), ("false", "NeverEvict"), ("maybe", "OptedOut")):
        pod = {**daemon, "annotations": {EVICT: value}}
        assert refused({}, pod) == ""
        assert refused({}, pod, exact=False) == safe


@pytest.mark.parametrize(
    "annotation",
    [{"karpenter.sh/do-not-disrupt": "true"}, {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}],
)
def test_opt_outs_of_other_tools_are_honoured_here(annotation: dict[str, Any]) -> None:
    """With the value that means it; upstream does not know them."""
    (name, value), *_ = annotation.items()
    other = {"true": "false", "false": "true"}[value]

    assert refused({}, {"annotations": annotation}, exact=False) == "OptedOut"
    assert refused({}, {"annotations": {name: other}}, exact=False) == ""
    assert refused({}, {"annotations": annotation}) == ""


def test_prefer_no_eviction_is_final_when_mandatory() -> None:
    """And only then."""
    pod = {"annotations": {OPT_OUT: ""}}

    assert refused({}, pod) == ""
    assert refused({"noEvictionPolicy": "Preferred"}, pod) == ""
    assert refused({"noEvictionPolicy": "Mandatory"}, pod) == "OptedOut"


class TestPriorityThreshold:
    """Evictable below it, by value or by class."""

    @pytest.mark.parametrize(("priority", "reason"), [(None, ""), (99, ""), (100, "PriorityThreshold")])
    def test_pods_below_it_may_go(self, priority: int | None, reason: str) -> None:
        """A pod without priority is below any."""
        pod = {"priority": priority}

        assert refused({"priorityThreshold": {"value": 100}}, pod) == reason
        assert refused({"priorityThreshold": {"name": "high"}}, pod, objects=a_class(100)) == reason

    def test_it_falls_with_the_protection_of_critical_pods_upstream_only(self) -> None:
        """Two cases of upstream's tests assert exactly this; here it stands by itself."""
        args = {"priorityThreshold": {"value": 100}, "evictSystemCriticalPods": True}

        assert refused(args, {"priority": 500}) == ""
        assert refused(args, {"priority": 500}, exact=False) == "PriorityThreshold"

    def test_a_class_that_is_not_there_is_an_error(self) -> None:
        """Its name is in the sentence."""
        with pytest.raises(CannotJudgeError, match='no PriorityClass "high"'):
            refused({"priorityThreshold": {"name": "high"}}, {"priority": 1})


@pytest.mark.parametrize(("least", "reason"), [(0, ""), (1, ""), (2, ""), (3, "MinReplicas")])
def test_small_owners_keep_their_pods(least: int, reason: str) -> None:
    """Two replicas: a minimum of two lets one go, a minimum of three does not."""
    sibling = a_pod("q", node="n2", owner="ReplicaSet/web", status={"phase": "Failed"})

    assert refused({"minReplicas": least}, {}, others=[sibling]) == reason


@pytest.mark.parametrize(
    ("least", "sibling_ready", "exact", "reason"),
    [
        (2, "False", False, "LastReady"),
        (2, "True", False, ""),
        (1, "False", False, ""),  # the user allows the last one
        (2, "False", True, ""),  # descheduler counts pods, ready or not
    ],
)
def test_the_only_ready_pod_of_an_owner_stays(
    least: int, sibling_ready: str, exact: bool, reason: str
) -> None:
    """Two replicas of which one serves: its eviction would leave none."""

    def status(ready: str) -> dict[str, Any]:
        return {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}

    sibling = a_pod("q", node="n2", owner="ReplicaSet/web", status=status(sibling_ready))
    args = {"minReplicas": least}

    assert refused(args, {"status": status("True")}, exact=exact, others=[sibling]) == reason


def test_a_surge_lifts_the_protection_of_the_last_pod_and_hides_no_other() -> None:
    """The planner receives the refusal and may lift it; a pod that is too young stays for that reason."""

    class Lifts:
        asked = ()

        def lift(self, pod: Any, refusal: Any) -> None:
            self.asked = (*self.asked, refusal.reason)  # type: ignore[assignment] # a fake differs on purpose

    def admitted(args: dict[str, Any], **status: Any) -> tuple[bool, tuple[str, ...], list[str]]:
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], **status}
        pod = a_pod("p", node="n1", owner="ReplicaSet/web", status=ready)
        context = a_context([a_node("n1")], [pod], evictor=an_evictor(**args), exact=False)
        context.surges = lifts = Lifts()
        is_admitted = context.is_evictable(context.cluster.pods[pod.uid], "wanted")
        return is_admitted, lifts.asked, [each.refusal.reason for each in context.protected]

    young = (NOW - timedelta(minutes=1)).isoformat()
    assert admitted({"minReplicas": 2}) == (True, ("MinReplicas",), [])
    assert admitted({"minReplicas": 2, "minPodAge": "1h"}, startTime=young) == (False, (), ["MinPodAge"])


def test_pods_of_another_namespace_that_name_the_owner_do_not_count() -> None:
    """A user who may create pods there could make a workload look larger, and its last ready pod go."""
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    spoofed = [
        a_pod(f"q{index}", namespace="mallory", node="n2", owner="ReplicaSet/web", status=ready)
        for index in range(5)
    ]
    sibling = a_pod("q", node="n2", owner="ReplicaSet/web", status={"phase": "Pending"})

    assert refused({"minReplicas": 2}, {"status": ready}, exact=False, others=spoofed) == "MinReplicas"
    assert refused({"minReplicas": 2}, {"status": ready}, others=spoofed) == ""  # descheduler counts by uid
    others = [sibling, *spoofed]
    assert refused({"minReplicas": 2}, {"status": ready}, exact=False, others=others) == "LastReady"


def test_two_owners_have_no_minimum() -> None:
    """As upstream has it."""
    owners = [{"kind": "ReplicaSet", "name": name, "uid": name} for name in ("a", "b")]

    assert refused({"minReplicas": 3}, {"metadata": {"ownerReferences": owners}}) == ""


@pytest.mark.parametrize(("age_min", "reason"), [(10, "MinPodAge"), (60, ""), (None, "MinPodAge")])
def test_young_pods_stay(age_min: int | None, reason: str) -> None:
    """Fifty minutes at least since the start; not started is too young."""
    started = None if age_min is None else (NOW - timedelta(minutes=age_min)).isoformat()

    assert refused({"minPodAge": "50m"}, {"status": {"startTime": started}}) == reason


def test_labels_narrow_it() -> None:
    """The evictor's own selector."""
    args = {"labelSelector": {"matchLabels": {"app": "web"}}}

    assert refused(args, {"labels": {"app": "web"}}) == ""
    assert refused(args, {"labels": {"app": "db"}}) == "LabelSelector"


@pytest.mark.parametrize(("labels", "admitted"), [({"team": "a"}, True), ({}, False), (None, False)])
def test_namespaces_are_checked_right_before_the_eviction(
    labels: dict[str, Any] | None, admitted: bool
) -> None:
    """The evict annotation does not help; a namespace that is not known does not match."""
    evictor = an_evictor(namespaceLabelSelector={"matchLabels": {"team": "a"}})
    namespace = convert(Namespace, {"metadata": {"name": "default", "labels": labels}})
    pod = a_pod("p", node="n1", annotations={EVICT: ""})
    objects = {} if labels is None else {"namespaces": {"default": namespace}}
    context = a_context([a_node("n1")], [pod], evictor=evictor, objects=objects)

    refusal = evictor.pre_eviction_filter(context.cluster.pods[pod.uid], context)

    assert (refusal is None) is admitted


@pytest.mark.parametrize(
    ("selector", "fits"), [("", True), ("kubernetes.io/hostname=n2", True), ("a=b", False), ("a in (", False)]
)
def test_node_fit_looks_at_the_selected_nodes(selector: str, fits: bool) -> None:
    """A selector that cannot be parsed selects none. Proven leaves the question to the proof."""
    evictor = an_evictor(nodeFit=True, nodeSelector=selector)
    pod = a_pod("p", node="n1", owner="ReplicaSet/web")

    for exact in (True, False):
        context = a_context([a_node("n1"), a_node("n2")], [pod], evictor=evictor, exact=exact)
        refusal = evictor.pre_eviction_filter(context.cluster.pods[pod.uid], context)
        assert (refusal is None) is (fits or not exact)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"priorityThreshold": {"value": 1, "name": "high"}}, "only one of priorityThreshold"),
        ({"priorityThreshold": {"value": 2_000_000_001}}, "can't be greater than"),
        ({"noEvictionPolicy": "Never"}, "Mandatory"),
        ({"evictFailedBarePods": True, "podProtections": {DISABLED: ["DaemonSetPods"]}}, "deprecated"),
        ({"podProtections": {ENABLED: ["DaemonSetPods"]}}, "not allowed"),
        ({"podProtections": {DISABLED: ["PodsWithPVC"]}}, "not allowed"),
        ({"podProtections": {DISABLED: ["DaemonSetPods", "DaemonSetPods"]}}, "twice"),
        (
            {
                "podProtections": {
                    ENABLED: ["PodsWithPVC"],
                    "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": ""}]}},
                }
            },
            "has no name",
        ),
        ({"minReplicas": -1}, "greater than or equal"),
        ({"minPodAge": "1 hour"}, "not a duration"),
        ({"minPodAge": "."}, "not a duration"),
        ({"minPodAge": "0" * 1500}, "not a duration"),  # a search of minutes
        ({"minPodAge": "99999999999999999999s"}, "too long a duration"),
        ({"minPodAge": "2562047h47m16.854775808s"}, "too long a duration"),
        ({"labelSelector": {"matchLabels": {"a b": ""}}}, "failed to get label selectors"),
        ({"nodefit": True}, "Extra inputs"),
        ({"nodeFit": "yes"}, "valid boolean"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(args: dict[str, Any], message: str) -> None:
    """Each with what is wrong."""
    with pytest.raises(ValidationError, match=message):
        an_evictor(**args)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("1h30m", 5400),
        ("0", 0),
        ("-1s", -1),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        ("+2s", 2),
        ("1.h", 3600),
        (".5h", 1800),
        ("1us", 1e-6),
        ("1\u00b5s", 1e-6),
        ("1\u03bcs", 1e-6),
    ],
)
def test_durations_are_go_s(text: str, seconds: float) -> None:
    """Numbers with units, one after the other."""
    assert duration(text) == timedelta(seconds=seconds)
