"""PodGroups of scheduling.k8s.io/v1alpha2, served on demand; refusals are those of kube-apiserver 1.36.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from roadstead.assembly import built_in_api
from roadstead.cluster import DevCluster
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.store.api import Api

GROUPS = "podgroups.scheduling.k8s.io"
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 2}}}
BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}


@pytest.fixture
def api() -> Api:
    """An API that serves them."""
    return built_in_api(pod_groups=True)


def made(api: Api, spec: dict[str, Any]) -> Any:
    """A PodGroup."""
    return api.create(GROUPS, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})


def test_a_group_gets_mode_and_priority(api: Api) -> None:
    api.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "high"}, "value": 9})

    spec = made(api, {**GANG, "priorityClassName": "high"})["spec"]

    assert (spec["disruptionMode"], spec["priority"]) == ("Pod", 9)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({}, 'spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'),
        ({"schedulingPolicy": {"gang": {}}}, "spec.schedulingPolicy.gang.minCount: Required value"),
        (
            {"schedulingPolicy": {"gang": {"minCount": -1}}},
            "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
        ),
        (
            {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}},
            'Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`',
        ),
        (
            {**BASIC, "disruptionMode": "Some"},
            'spec.disruptionMode: Unsupported value: "Some": supported values: "Pod", "PodGroup"',
        ),
        (
            {**BASIC, "schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item",
        ),
        (
            {**BASIC, "schedulingConstraints": {"topology": [{"key": ""}]}},
            "spec.schedulingConstraints.topology[0].key: Required value",
        ),
        (
            {**BASIC, "priority": 7},
            "priority set in the pod group (7) must match the priority computed (0) based on the",
        ),
        ({**BASIC, "priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
    ],
)
def test_refusals(api: Api, spec: dict[str, Any], fault: str) -> None:
    with pytest.raises(StatusError) as caught:
        made(api, spec)

    assert fault in str(caught.value.status["message"])


def test_a_spec_stays_as_it_is(api: Api) -> None:
    group = made(api, GANG)
    changed = {**group, "spec": {**group["spec"], "schedulingPolicy": {"gang": {"minCount": 3}}}}

    with pytest.raises(StatusError) as caught:
        api.update(GROUPS, changed)

    assert "spec.schedulingPolicy: Invalid value: null: field is immutable" in caught.value.status["message"]


@pytest.mark.parametrize("served", [True, False])
def test_a_pod_keeps_its_group_where_groups_are_served(served: bool) -> None:
    api = built_in_api(pod_groups=served)
    containers = [{"name": "c", "image": "i"}]
    spec = {"schedulingGroup": {"podGroupName": "g"}, "containers": containers}
    selector = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}

    pod = api.create("pods", {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    owner = api.create(
        "replicasets.apps",
        {
            "metadata": {"name": "r", "namespace": "default"},
            "spec": {"selector": selector, "template": template},
        },
    )

    kept = {"podGroupName": "g"} if served else None
    assert pod["spec"].get("schedulingGroup") == kept
    assert owner["spec"]["template"]["spec"].get("schedulingGroup") == kept


def test_a_pod_names_its_group(api: Api) -> None:
    spec = {"schedulingGroup": {}, "containers": [{"name": "c", "image": "i"}]}

    with pytest.raises(StatusError) as caught:
        api.create("pods", {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})

    assert "spec.schedulingGroup.podGroupName: Invalid value: null" in caught.value.status["message"]


@pytest.mark.parametrize(("served", "versions"), [(True, ["v1", "v1alpha2"]), (False, ["v1"])])
async def test_discovery_names_them_where_they_are_served(served: bool, versions: list[str]) -> None:
    async with (
        DevCluster(port=None, controllers=False, kubelets=None, pod_groups=served) as cluster,
        cluster.session() as session,
        session.get("/apis/scheduling.k8s.io") as answer,
    ):
        group = await answer.json()

    assert [each["version"] for each in group["versions"]] == versions
    assert group["preferredVersion"]["version"] == "v1"


async def test_kubectl_sees_policy_and_state(api: Api) -> None:
    async with DevCluster(port=None, controllers=False, kubelets=None, pod_groups=True) as cluster:
        made(cluster.api, GANG)
        path = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
        table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        condition = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled", "message": ""}
        body = {"status": {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
        patch = {"Content-Type": "application/strategic-merge-patch+json"}
        async with cluster.session() as session:
            async with session.get(path, headers=table) as answer:
                before = (await answer.json())["rows"][0]["cells"][:4]
            async with session.patch(f"{path}/g/status", json=body, headers=patch) as answer:
                assert answer.status == 200
            async with session.get(path, headers=table) as answer:
                after = (await answer.json())["rows"][0]["cells"][:4]

    assert (before, after) == (["g", "Gang", "<none>", "Pending"], ["g", "Gang", "<none>", "Scheduled"])


# -- v1alpha3, with composite groups -----------------------------------------------------------------------

COMPOSITES = "compositepodgroups.scheduling.k8s.io"
REFERENCE = {"workloadRef": {"workloadName": "w", "templateName": "t"}}
GROUPS_OF_TWO: dict[str, Any] = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, **REFERENCE}


@pytest.fixture
def newer() -> Api:
    """An API that serves composite groups."""
    return built_in_api(composite_groups=True)


def test_a_composite_group_and_its_parts_get_mode_and_priority(newer: Api) -> None:
    newer.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "high"}, "value": 9})
    metadata = {"name": "g", "namespace": "default"}
    part = {**GANG, **REFERENCE, "parentCompositePodGroupName": "g"}

    composite = newer.create(
        COMPOSITES, {"metadata": metadata, "spec": {**GROUPS_OF_TWO, "priorityClassName": "high"}}
    )
    group = made(newer, part)

    assert (composite["spec"]["disruptionMode"], composite["spec"]["priority"]) == ({"single": {}}, 9)
    assert group["spec"]["parentCompositePodGroupName"] == "g"
    assert {each["apiVersion"] for each in (composite, group)} == {"scheduling.k8s.io/v1alpha3"}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"schedulingPolicy": {"basic": {}}}, "spec.workloadRef: Required value"),
        (
            {**REFERENCE, "schedulingPolicy": {"gang": {"minCount": 2}}},
            "spec.schedulingPolicy.gang.minGroupCount: Required value",
        ),
        (
            {**GROUPS_OF_TWO, "disruptionMode": {"all": {}, "single": {}}},
            'Invalid value: "{all, single}": must specify exactly one of: `all`, `single`',
        ),
    ],
)
def test_refusals_of_composite_groups(newer: Api, spec: dict[str, Any], fault: str) -> None:
    with pytest.raises(StatusError) as caught:
        newer.create(COMPOSITES, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})

    assert fault in str(caught.value.status["message"])


def test_a_part_without_a_workload_is_refused(newer: Api) -> None:
    with pytest.raises(StatusError) as caught:
        made(newer, {**GANG, "parentCompositePodGroupName": "g"})

    assert "spec.workloadRef: Required value" in caught.value.status["message"]


def test_only_the_numbers_of_a_gang_change(newer: Api) -> None:
    made_of = {"metadata": {"name": "g", "namespace": "default"}, "spec": GROUPS_OF_TWO}
    composite = newer.create(COMPOSITES, made_of)
    spec = composite["spec"]

    fewer = newer.update(
        COMPOSITES, {**composite, "spec": {**spec, "schedulingPolicy": {"gang": {"minGroupCount": 1}}}}
    )
    with pytest.raises(StatusError) as caught:
        newer.update(COMPOSITES, {**fewer, "spec": {**fewer["spec"], "disruptionMode": {"all": {}}}})

    assert fewer["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 1}}
    assert "spec.disruptionMode: Invalid value: null: field is immutable" in caught.value.status["message"]


async def test_discovery_names_composite_groups() -> None:
    async with (
        DevCluster(port=None, controllers=False, kubelets=None, composite_groups=True) as cluster,
        cluster.session() as session,
        session.get("/apis/scheduling.k8s.io/v1alpha3") as answer,
    ):
        names = {each["name"] for each in (await answer.json())["resources"]}

    assert {"compositepodgroups", "compositepodgroups/status", "podgroups", "workloads"} <= names
