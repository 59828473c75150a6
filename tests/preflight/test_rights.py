"""Rights of the operator's account: the needed and missing ones, and their manifest."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.test_declared_kinds import RackDefaults, RackQuota
from deploy.manifests import grants
from plimsoll.access.rights import (
    ALLOCATE,
    BIND,
    EVICT,
    MAINTENANCE_STATUS,
    PREEMPT,
    READ_AUTOSCALERS,
    READ_COMPOSITES,
    READ_DEVICES,
    READ_MAINTENANCES,
    READ_POD_GROUPS,
    RECORD,
    RULE_STATUS,
    TAINT,
)
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.check.checks import judged_review
from plimsoll.check.grants import granting
from plimsoll.check.record_guard import AdmissionPolicies
from plimsoll.check.review import Review
from plimsoll.cluster.watched_resources import resource_of
from plimsoll.preflight import rights
from plimsoll.preflight.findings import Finding, Level
from plimsoll.preflight.rights import (
    ELECTING,
    Account,
    DevicePresence,
    NeededRight,
    ReviewedRight,
    judged_rights,
    service_account,
    wanted_rights,
)

ACCOUNT = service_account("plimsoll", "plimsoll", "the account of Deployment plimsoll/plimsoll")


def policy(name: str = "moving", **spec: Any) -> SchedulingPolicy:
    """A policy."""
    return SchedulingPolicy.model_validate(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": name},
            "spec": spec,
        }
    )


ENFORCING = policy(rebalancing={"mode": "Enforce", "strategies": [{"name": "ConsolidateNodes"}]})
PLACING = policy("placing", scheduling={"schedulerName": "mine"})


def wanted(*policies: SchedulingPolicy) -> tuple[NeededRight, ...]:
    """What is needed."""
    return tuple(wanted_rights(policies, [("plimsoll", "plimsoll")]))


def asked(*policies: SchedulingPolicy) -> set[ReviewedRight]:
    """All of it."""
    return {one for each in wanted(*policies) for one in each.asked}


@pytest.mark.parametrize(
    ("overlay", "policies"),
    [
        ("dry-run", [policy(rebalancing={"metricsProviders": [{"source": "KubernetesMetrics"}]})]),
        ("enforce", [ENFORCING, PLACING]),
        ("surge", [policy(rebalancing={"mode": "Enforce", "surge": True})]),
    ],
)
def test_an_overlay_grants_what_its_policies_need(overlay: str, policies: list[SchedulingPolicy]) -> None:
    """What is asked for is what deploy/ grants: the two lists do not drift apart."""
    granted = grants(overlay)

    assert {tuple(one.right) for one in asked(*policies)} <= granted


def test_every_read_right_of_a_dry_run_is_reviewed() -> None:
    """And nothing that its role grants is forgotten."""
    measuring = policy(rebalancing={"metricsProviders": [{"source": "KubernetesMetrics"}]})

    reviewed = {tuple(one.right) for one in asked(measuring)}

    optional = (*READ_POD_GROUPS, *READ_COMPOSITES, *READ_MAINTENANCES, MAINTENANCE_STATUS, RULE_STATUS)
    where_served = {tuple(right) for right in optional}

    assert grants("dry-run") - reviewed == {("patch", "events.k8s.io", "events")} | where_served


def answers(denied: set[ReviewedRight], *policies: SchedulingPolicy) -> dict[ReviewedRight, bool | None]:
    """Everything else is allowed."""
    return {one: one not in denied for one in asked(*policies)}


@pytest.mark.parametrize("first", [0, 1, 2])
def test_several_policies_need_what_each_of_them_needs(first: int) -> None:
    """In any order: no policy makes a right of another one superfluous."""
    measuring = policy("measuring", rebalancing={"metricsProviders": [{"source": "KubernetesMetrics"}]})
    each = [ENFORCING, PLACING, measuring]

    assert asked(*each[first:], *each[:first]) >= asked(ENFORCING) | asked(PLACING) | asked(measuring)


def test_what_stops_a_part_is_an_error_and_the_rest_a_warning() -> None:
    """Each policy says what it lacks, with the manifest."""
    denied = {ReviewedRight(EVICT), ReviewedRight(TAINT[1]), ReviewedRight(PREEMPT)}
    found = {
        each.subject: each
        for each in judged_rights(ACCOUNT, wanted(ENFORCING, PLACING), answers(denied, ENFORCING, PLACING))
    }

    assert found["the operator"].level is Level.OK
    moving, placing = found["policy moving"], found["policy placing"]
    assert moving.level is Level.ERROR
    assert moving.message == (
        "system:serviceaccount:plimsoll:plimsoll may not create pods/eviction or patch nodes: no pod is moved"
    )
    assert moving.remedy == "apply deploy/enforce (chart: mode: Enforce)"
    assert placing.level is Level.WARNING
    assert placing.message.endswith("may not delete pods")
    assert "deploy/enforce/preempting.yaml" in placing.remedy


def test_a_policy_that_moves_pods_needs_bindings_where_another_places_them() -> None:
    """As the operator has it: nothing is evicted that could not be placed again."""
    alone, together = asked(ENFORCING), asked(ENFORCING, PLACING)

    assert ReviewedRight(BIND) not in alone
    (moving,) = [each for each in wanted(ENFORCING, PLACING) if each.subject == "policy moving"]
    assert ReviewedRight(BIND) in moving.asked
    assert ReviewedRight(BIND) in together


def test_rights_are_reviewed_in_the_namespaces_of_the_scope() -> None:
    """RoleBindings may grant them there."""
    narrow = policy(
        scope={"namespaces": {"include": ["a", "b"]}}, rebalancing={"mode": "Enforce", "strategies": []}
    )

    needed = asked(narrow)

    assert {ReviewedRight(EVICT, "a"), ReviewedRight(EVICT, "b")} <= needed
    assert ReviewedRight(EVICT) not in needed


def test_a_right_of_the_operator_itself_is_essential() -> None:
    """Without its lease, or a list, nothing works."""
    lease = ReviewedRight(ELECTING[2], "plimsoll", "plimsoll")

    (finding,) = judged_rights(ACCOUNT, wanted(), answers({lease}))

    assert finding.level is Level.ERROR
    assert finding.message == (
        f"{ACCOUNT.user} may not update leases.coordination.k8s.io in namespace plimsoll"
    )
    assert finding.remedy == "apply deploy/dry-run (chart: rbac.create: true)"


def test_reviews_without_an_answer_are_said() -> None:
    """Nothing is claimed about them."""
    (finding,) = judged_rights(ACCOUNT, wanted(), dict.fromkeys(asked(), None))

    assert finding.level is Level.WARNING
    assert "were not reviewed" in finding.message


def test_the_manifest_grants_exactly_what_is_missing() -> None:
    """Verbs of a resource in one rule, namespaces in roles of their own, the lease by its name."""
    missing = [
        ReviewedRight(RECORD[0]),
        ReviewedRight(EVICT),
        ReviewedRight(TAINT[0]),
        ReviewedRight(TAINT[1]),
        ReviewedRight(ELECTING[1], "plimsoll", "plimsoll"),
        ReviewedRight(ELECTING[0], "plimsoll"),
    ]

    manifest = granting([(ACCOUNT, missing)])

    assert manifest is not None
    assert (manifest["apiVersion"], manifest["kind"]) == ("v1", "List")
    cluster_role, binding, role, _ = manifest["items"]
    assert cluster_role["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {"apiGroups": ["plimsoll.dev"], "resources": ["evictions"], "verbs": ["create"]},
    ]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "plimsoll", "namespace": "plimsoll"}]
    assert role["metadata"] == {"name": "plimsoll-missing", "namespace": "plimsoll"}
    assert role["rules"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["plimsoll"],
            "verbs": ["get"],
        },
    ]
    assert granting([(ACCOUNT, [])]) is None


def test_a_user_is_bound_as_a_user() -> None:
    """With --self outside of a cluster."""
    manifest = granting([(Account("jane", "", "--self"), [ReviewedRight(EVICT)])])

    assert manifest is not None
    assert manifest["items"][1]["subjects"] == [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
    ]


def of_devices(use: DevicePresence, denied: set[ReviewedRight], *policies: SchedulingPolicy) -> list[Finding]:
    """Findings about devices, where these rights are missing and no other."""
    needed = [each for each in wanted_rights(policies, (), use) if each.subject == "devices"]
    given: dict[ReviewedRight, bool | None] = {
        one: one not in denied for each in needed for one in each.asked
    }
    return list(judged_rights(ACCOUNT, needed, given))


def test_rights_on_devices_are_named_with_their_component() -> None:
    """One sentence: what is missing, what comes of it, and what to apply."""
    denied = set(map(ReviewedRight, (*READ_DEVICES, *ALLOCATE)))

    (finding,) = of_devices(DevicePresence.USED, denied, PLACING)

    assert (finding.level, finding.subject) == (Level.WARNING, "devices")
    assert finding.message == (
        f"{ACCOUNT.user} may not use deviceclasses.resource.k8s.io (list, watch),"
        " resourceclaims.resource.k8s.io (list, watch, get, create, patch, delete),"
        " resourceslices.resource.k8s.io (list, watch), resourceclaims.resource.k8s.io/status (patch) or"
        " resourceclaims.resource.k8s.io/binding (patch):"
        " pods with resource claims wait, all others are served"
    )
    assert finding.remedy == "apply deploy/components/devices (chart: devices: true)"


def test_a_cluster_without_devices_needs_no_rights_on_them() -> None:
    """It is said and is no problem; where the API server does not serve them nothing is said."""
    denied = set(map(ReviewedRight, READ_DEVICES))

    (finding,) = of_devices(DevicePresence.UNUSED, denied, PLACING)

    assert finding.level is Level.OK
    assert finding.message.endswith("all others are served; the cluster has neither devices nor claims")
    assert finding.remedy == "before it has some, apply deploy/components/devices (chart: devices: true)"
    assert of_devices(DevicePresence.NOT_SERVED, denied, PLACING) == []


def test_rights_on_autoscalers_are_named_with_what_counts_without_them() -> None:
    """Where there are autoscalers and a policy moves pods; otherwise nothing is said."""
    missing = set(map(ReviewedRight, READ_AUTOSCALERS))

    def found(policy: SchedulingPolicy, *, has_autoscalers: bool) -> list[Finding]:
        wanted = wanted_rights((policy,), (), has_autoscalers=has_autoscalers)
        needed = [each for each in wanted if each.subject == "recommended requests"]
        return list(judged_rights(ACCOUNT, needed, dict.fromkeys(missing, False)))

    (finding,) = found(ENFORCING, has_autoscalers=True)

    assert finding.level is Level.WARNING
    assert finding.message == (
        f"{ACCOUNT.user} may not list verticalpodautoscalers.autoscaling.k8s.io or watch"
        " verticalpodautoscalers.autoscaling.k8s.io: moves are proven with what an owner's newest pods"
        " request, not with what is recommended"
    )
    assert finding.remedy == (
        "apply deploy/components/vertical-pod-autoscalers (chart: verticalPodAutoscalers: true)"
    )
    assert found(ENFORCING, has_autoscalers=False) == found(PLACING, has_autoscalers=True) == []


def test_rights_on_what_plugins_declare_are_named_with_how_to_grant_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each where its kind is read: in one namespace, or in all; without such plugins nothing is said."""
    monkeypatch.setattr(rights, "declared_here", lambda: (resource_of(RackQuota), resource_of(RackDefaults)))
    (needed,) = (each for each in wanted_rights((PLACING,), ()) if each.subject == "what plugins read")

    assert [(one.right.text, one.namespace) for one in needed.asked] == [
        ("list rackquotas.example.com", ""),
        ("watch rackquotas.example.com", ""),
        ("list configmaps", "default"),
        ("watch configmaps", "default"),
    ]
    (finding,) = judged_rights(ACCOUNT, [needed], dict.fromkeys(needed.asked, False))
    assert finding.level is Level.WARNING
    assert finding.message.endswith("in namespace default: plugins and strategies that read these fail")
    assert finding.remedy == "grant them (chart: rbac.extraRules)"
    monkeypatch.setattr(rights, "declared_here", tuple)
    assert [each for each in wanted_rights((PLACING,), ()) if each.subject == "what plugins read"] == []


def test_devices_are_only_read_where_no_policy_places_pods() -> None:
    """For plans."""
    denied = set(map(ReviewedRight, ALLOCATE))

    assert [each.level for each in of_devices(DevicePresence.USED, denied, ENFORCING)] == [Level.OK]
    assert [each.level for each in of_devices(DevicePresence.USED, denied, PLACING)] == [Level.WARNING]


def test_each_account_is_granted_what_it_lacks() -> None:
    """Roles of two accounts have names of their own; an account that lacks nothing gets none."""
    red, blue = service_account("red", "plimsoll", ""), service_account("blue", "plimsoll", "")

    manifest = granting([(red, [ReviewedRight(EVICT)]), (ACCOUNT, []), (blue, [ReviewedRight(TAINT[0])])])

    assert manifest is not None
    assert [
        (each["metadata"]["name"], each["rules"][0]["verbs"])
        for each in manifest["items"]
        if each["kind"] == "ClusterRole"
    ] == [("plimsoll-missing-red-plimsoll", ["create"]), ("plimsoll-missing-blue-plimsoll", ["get"])]
    assert [each["subjects"][0]["namespace"] for each in manifest["items"][1::2]] == ["red", "blue"]


@pytest.mark.parametrize("keeps_records", [True, False])
def test_only_who_keeps_records_is_judged_by_their_guard(*, keeps_records: bool) -> None:
    """An operator with a name writes none, so the admission policy may refuse it."""
    found: Any = SimpleNamespace(guards=AdmissionPolicies())

    said = list(judged_review(found, [Review(ACCOUNT, keeps_records=keeps_records)]))

    assert any(each.subject == "Eviction records" for each in said) is keeps_records
