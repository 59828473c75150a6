"""Objects of resource.k8s.io: defaults, refusals and the rules of a claim's status, as upstream 1.36."""

import datetime as dt
from typing import Any

import pytest

from roadstead.assembly import built_in_api
from roadstead.server.tables import Tables
from roadstead.store.api import Api, Write
from roadstead.store.patches import strategic
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError

CLASSES, SLICES = "deviceclasses.resource.k8s.io", "resourceslices.resource.k8s.io"
CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
REQUEST: dict[str, Any] = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
DEVICE = {"name": "gpu-0"}
RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [RESULT]}}
POD = {"resource": "pods", "name": "p", "uid": "u"}
CONDITION: dict[str, Any] = {
    "type": "Ready",
    "status": "True",
    "reason": "Prepared",
    "message": "it is",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}


@pytest.fixture
def api() -> Api:
    """An empty cluster."""
    return built_in_api(lambda: NOW)


def created(api: Api, resource: str, spec: Any, name: str = "it", **meta: Any) -> Any:
    if resource in (CLAIMS, TEMPLATES):
        meta["namespace"] = "default"
    return copied(api.create(resource, {"metadata": {"name": name, **meta}, "spec": spec}))


def claim(*requests: Any, **devices: Any) -> Any:
    """The spec of a claim."""
    return {"devices": {"requests": list(requests) or [copied(REQUEST)], **devices}}


def asking(**more: Any) -> Any:
    """The spec of a claim whose one request has more fields."""
    return claim({"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", **more}})


def a_slice(*devices: Any, **more: Any) -> Any:
    """The spec of a slice of one node."""
    pool = {"name": "node-1", "resourceSliceCount": 1}
    return {
        "driver": "gpu.example.com",
        "nodeName": "node-1",
        "pool": pool,
        "devices": list(devices) or [dict(DEVICE)],
        **more,
    }


def selectors(*expressions: str) -> Any:
    return [{"cel": {"expression": one}} for one in expressions]


def causes(write: Any, *arguments: Any) -> set[str]:
    """Why a write is refused; nothing where it is let through."""
    try:
        write(*arguments)
    except StatusError as error:
        return {
            f"{one['reason'].removeprefix('FieldValue')} {one['field']}" for one in error.details["causes"]
        }
    return set()


def test_a_request_asks_for_one_device_by_default(api: Api) -> None:
    """In claims and in templates, and in each alternative."""
    alternatives = [{"name": "a", "deviceClassName": "c"}, {"name": "b", "deviceClassName": "c"}]
    alternatives[1]["allocationMode"] = "All"

    one = created(api, CLAIMS, claim(REQUEST, {"name": "list", "firstAvailable": alternatives}))
    nothing = created(api, CLAIMS, {}, "nothing")
    template = created(api, TEMPLATES, {"spec": claim()})

    exactly, listed = one["spec"]["devices"]["requests"]
    assert exactly["exactly"] == {**REQUEST["exactly"], "allocationMode": "ExactCount", "count": 1}
    assert [(each["allocationMode"], each.get("count")) for each in listed["firstAvailable"]] == [
        ("ExactCount", 1),
        ("All", None),
    ]
    assert template["spec"]["spec"]["devices"]["requests"] == [exactly]
    assert one["status"] == {}
    assert nothing["spec"] == {"devices": {"requests": None}}


def test_a_toleration_is_of_one_value_by_default(api: Api) -> None:
    """Of an empty one there; no number of them is too many."""
    many = [{"key": f"example.com/k{number}"} for number in range(40)]
    one = created(api, CLAIMS, claim({"name": "gpu", "exactly": {**REQUEST["exactly"], "tolerations": many}}))
    results = [{**RESULT, "tolerations": [{}, {"operator": "Unknown"}]}]

    one = api.update_status(CLAIMS, {**one, "status": {"allocation": {"devices": {"results": results}}}})

    assert {each["operator"] for each in one["spec"]["devices"]["requests"][0]["exactly"]["tolerations"]} == {
        "Equal"
    }
    (allocated,) = one["status"]["allocation"]["devices"]["results"]
    assert [each["operator"] for each in allocated["tolerations"]] == ["Equal", "Unknown"]


def test_counters_and_capacities_have_a_value(api: Api) -> None:
    """Zero, where none is given; a policy shows its default, given or not."""
    device = {
        "name": "d",
        "capacity": {"a": {}, "b": {"value": "8Gi", "requestPolicy": {}}},
        "allowMultipleAllocations": True,
        "consumesCounters": [{"counterSet": "s", "counters": {"a": {}}}],
    }
    sets = [{"name": "s", "counters": {"a": {}}}]

    (one,) = created(api, SLICES, a_slice(device))["spec"]["devices"]
    other = created(api, SLICES, a_slice(sharedCounters=sets, devices=None), "counters")

    assert one["capacity"] == {"a": {"value": "0"}, "b": {"value": "8Gi", "requestPolicy": {"default": None}}}
    assert one["consumesCounters"][0]["counters"] == {"a": {"value": "0"}}
    assert other["spec"]["sharedCounters"] == [{"name": "s", "counters": {"a": {"value": "0"}}}]


def test_a_slice_counts_generations_and_its_taints_have_a_time(api: Api) -> None:
    """The generation of the pool is another one, which drivers count."""
    tainted = {**DEVICE, "taints": [{"key": "broken", "effect": "NoSchedule"}]}
    one = created(api, SLICES, a_slice(tainted))
    one["spec"]["pool"]["generation"] = 7

    changed = api.update(SLICES, one)

    assert changed["metadata"]["generation"] == 2
    assert changed["spec"]["devices"][0]["taints"][0]["timeAdded"] == "2026-01-02T03:04:05Z"
    assert one["spec"]["pool"]["generation"] == 7


HUGE = "x" * 65


@pytest.mark.parametrize(
    ("resource", "spec", "expected"),
    [
        (CLAIMS, {}, set()),
        (CLAIMS, claim({"name": "gpu"}), {"Required spec.devices.requests[0]"}),
        (
            CLAIMS,
            claim({**REQUEST, "firstAvailable": [{"name": "a", "deviceClassName": "c"}]}),
            {"Invalid spec.devices.requests[0]"},
        ),
        (CLAIMS, claim(REQUEST, REQUEST), {"Duplicate spec.devices.requests[1]"}),
        (
            CLAIMS,
            claim(*[{**REQUEST, "name": f"r{n}"} for n in range(33)]),
            {"TooMany spec.devices.requests"},
        ),
        (CLAIMS, asking(count=-1), {"Invalid spec.devices.requests[0].exactly.count"}),
        (CLAIMS, asking(allocationMode="All", count=2), {"Invalid spec.devices.requests[0].exactly.count"}),
        (
            CLAIMS,
            asking(allocationMode="Some"),
            {"NotSupported spec.devices.requests[0].exactly.allocationMode"},
        ),
        (
            CLAIMS,
            claim({"name": "gpu", "exactly": {}}),
            {"Required spec.devices.requests[0].exactly.deviceClassName"},
        ),
        (
            CLAIMS,
            asking(selectors=selectors("device.driver ==")),
            {"Invalid spec.devices.requests[0].exactly.selectors[0].cel.expression"},
        ),
        (
            CLAIMS,
            asking(selectors=selectors("true || " * 2000 + "true")),
            {"TooLong spec.devices.requests[0].exactly.selectors[0].cel.expression"},
        ),
        (CLAIMS, asking(selectors=[{}]), {"Required spec.devices.requests[0].exactly.selectors[0].cel"}),
        (
            CLAIMS,
            asking(
                tolerations=[{"operator": "Like"}, {"operator": "Exists", "value": "b", "effect": "Never"}]
            ),
            {
                "NotSupported spec.devices.requests[0].exactly.tolerations[0].operator",
                "Invalid spec.devices.requests[0].exactly.tolerations[1].value",
                "NotSupported spec.devices.requests[0].exactly.tolerations[1].effect",
            },
        ),
        (
            CLAIMS,
            asking(adminAccess=True),
            {"Forbidden spec.devices.requests[0].exactly.adminAccess"},
        ),
        (CLAIMS, claim(constraints=[{}]), {"Required spec.devices.constraints[0]"}),
        (
            CLAIMS,
            claim(constraints=[{"matchAttribute": "numa", "requests": ["other"]}]),
            {
                "Invalid spec.devices.constraints[0].requests[0]",
                "Invalid spec.devices.constraints[0].matchAttribute",
            },
        ),
        (CLAIMS, claim(constraints=[{"matchAttribute": "a/b/c"}]), set()),
        (
            SLICES,
            a_slice({"name": "d", "attributes": {"a/b/c": {"int": 1}, "none": {}}}),
            {"Invalid spec.devices[0].attributes[none]"},
        ),
        (
            CLAIMS,
            claim(config=[{}, {"opaque": {"driver": "Gpu Driver", "parameters": []}}]),
            {
                "Required spec.devices.config[0].opaque",
                "Invalid spec.devices.config[1].opaque.driver",
                "Invalid spec.devices.config[1].opaque.parameters",
            },
        ),
        (TEMPLATES, {"spec": asking(count=-1)}, {"Invalid spec.spec.devices.requests[0].exactly.count"}),
        (CLASSES, {}, set()),
        (CLASSES, {"selectors": selectors("1 + 1")}, {"Invalid spec.selectors[0].cel.expression"}),
        (CLASSES, {"selectors": selectors("true") * 33}, {"TooMany spec.selectors"}),
        (CLASSES, {"extendedResourceName": "cpu"}, {"Invalid spec.extendedResourceName"}),
        (CLASSES, {"extendedResourceName": "example.com/gpu"}, set()),
        (SLICES, a_slice(), set()),
        (SLICES, a_slice(nodeName=""), {"Required spec", "Invalid spec.nodeName"}),
        (SLICES, a_slice(allNodes=True), {"Invalid spec"}),
        (SLICES, a_slice(pool={"name": "p"}), {"Invalid spec.pool.resourceSliceCount"}),
        (SLICES, a_slice(*[{"name": f"d{n}"} for n in range(128)]), set()),
        (SLICES, a_slice(*[{"name": f"d{n}"} for n in range(129)]), {"TooMany spec.devices"}),
        (
            SLICES,
            a_slice(
                {"name": "d", "taints": [{"key": "a", "effect": "None"}]},
                *[{"name": f"d{n}"} for n in range(64)],
            ),
            {"TooMany spec.devices"},
        ),
        (SLICES, a_slice(DEVICE, DEVICE), {"Duplicate spec.devices[1]"}),
        (
            SLICES,
            a_slice(
                {
                    "name": "d",
                    "attributes": {
                        "model": {"string": HUGE},
                        "gpu.example.com/two": {"int": 1, "bool": True},
                        "none": {},
                        "release": {"version": "1.2"},
                        "not-an-id": {"bool": True},
                    },
                }
            ),
            {
                "TooLong spec.devices[0].attributes[model].string",
                "Invalid spec.devices[0].attributes[gpu.example.com/two]",
                "Invalid spec.devices[0].attributes[none]",
                "Invalid spec.devices[0].attributes[release].version",
                "Invalid spec.devices[0].attributes",
            },
        ),
        (
            SLICES,
            a_slice({"name": "d", "attributes": {f"a{n}": {"int": n} for n in range(33)}}),
            {"Invalid spec.devices[0]"},
        ),
        (
            SLICES,
            a_slice({"name": "d", "allNodes": True}),
            {"Invalid spec.devices[0]"},
        ),
        (
            SLICES,
            a_slice(
                {
                    "name": "d",
                    "capacity": {"memory": {"value": "8Gi", "requestPolicy": {"default": "1Gi"}}},
                }
            ),
            {"Forbidden spec.devices[0].capacity[memory].requestPolicy"},
        ),
        (
            SLICES,
            a_slice(
                {
                    "name": "d",
                    "allowMultipleAllocations": True,
                    "capacity": {
                        "a": {"value": "8Gi", "requestPolicy": {"validRange": {"min": "1Gi"}}},
                        "b": {
                            "value": "8Gi",
                            "requestPolicy": {"default": "3Gi", "validValues": ["1Gi", "2Gi"]},
                        },
                        "c": {
                            "value": "8Gi",
                            "requestPolicy": {"default": "3Gi", "validRange": {"min": "1Gi", "step": "2Gi"}},
                        },
                        "e": {
                            "value": "8Gi",
                            "requestPolicy": {"default": "1Gi", "validRange": {"min": "2Gi", "max": "4Gi"}},
                        },
                        "f": {
                            "value": "8Gi",
                            "requestPolicy": {"default": "6Gi", "validRange": {"min": "2Gi", "max": "4Gi"}},
                        },
                        "g": {
                            "value": "8",
                            "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "-1"}},
                        },
                        "h": {
                            "value": "8",
                            "requestPolicy": {"default": "2", "validValues": ["1500m", "2"]},
                        },
                    },
                }
            ),
            {
                "Required spec.devices[0].capacity[a].requestPolicy.default",
                "Invalid spec.devices[0].capacity[b].requestPolicy.validValues",
                "Invalid spec.devices[0].capacity[e].requestPolicy.validRange.min",
                "Invalid spec.devices[0].capacity[f].requestPolicy.validRange.max",
                "Duplicate spec.devices[0].capacity[h].requestPolicy.validValues[1]",
            },
        ),
        (
            SLICES,
            a_slice({"name": "d", "consumesCounters": [{"counterSet": "s"}], "bindingConditions": ["ready"]}),
            {
                "Required spec.devices[0].consumesCounters[0].counters",
                "Invalid spec.devices[0].bindingFailureConditions",
            },
        ),
    ],
)
def test_is_refused_as_upstream_refuses_it(api: Api, resource: str, spec: Any, expected: set[str]) -> None:
    """The reasons and fields of all causes."""
    assert causes(created, api, resource, spec) == expected


def test_administrators_need_a_label_of_the_namespace(api: Api) -> None:
    """With it, a claim may ask for devices that are in use."""
    label = {"resource.kubernetes.io/admin-access": "true"}
    api.patch("namespaces", None, "default", {"metadata": {"labels": label}})

    assert not causes(created, api, CLAIMS, asking(adminAccess=True))


def test_what_is_asked_for_and_where_devices_are_cannot_change(api: Api) -> None:
    """Claims and templates at all, slices in driver, pool and node."""
    one, template = created(api, CLAIMS, claim()), created(api, TEMPLATES, {"spec": claim()})
    sliced = created(api, SLICES, a_slice())
    one["spec"] = template["spec"]["spec"] = asking(count=2)
    sliced["spec"].update(nodeName="node-2", devices=[{"name": "other"}])

    assert causes(api.update, CLAIMS, one) == {"Invalid spec"}
    assert causes(api.update, TEMPLATES, template) == {"Invalid spec"}
    template["spec"]["spec"] = asking(count=-1)
    count = "Invalid spec.spec.devices.requests[0].exactly.count"
    assert causes(api.update, TEMPLATES, template) == {"Invalid spec", count}
    assert causes(api.update, SLICES, sliced) == {"Invalid spec.nodeName"}


def status_causes(api: Api, one: Any, **status: Any) -> set[str]:
    return causes(api.update_status, CLAIMS, {**copied(one), "status": status})


def test_an_allocation_is_set_once_and_leaves_with_its_consumers(api: Api) -> None:
    """It names requests of the claim, and what is not allocated is reserved for no pod."""
    one = created(api, CLAIMS, claim())
    unknown = {"devices": {"results": [{**RESULT, "request": "other"}]}}
    other = {"devices": {"results": [{**RESULT, "device": "gpu-1"}]}}

    assert status_causes(api, one, reservedFor=[POD]) == {"Forbidden status.reservedFor"}
    assert status_causes(api, one, allocation=unknown) == {
        "Invalid status.allocation.devices.results[0].request"
    }
    one = copied(api.update_status(CLAIMS, {**one, "status": {"allocation": ALLOCATION}}))
    assert status_causes(api, one, allocation=other) == {"Invalid status.allocation"}
    one = copied(
        api.update_status(CLAIMS, {**one, "status": {"allocation": ALLOCATION, "reservedFor": [POD]}})
    )
    assert status_causes(api, one, reservedFor=[POD]) == {"Forbidden status.reservedFor"}
    assert not status_causes(api, one)


def test_a_claim_has_at_most_256_consumers_each_once(api: Api) -> None:
    """Their uids count, not their names."""
    one = created(api, CLAIMS, claim())
    many = [{**POD, "uid": f"u{number}"} for number in range(257)]

    assert status_causes(api, one, allocation=ALLOCATION, reservedFor=many) == {"TooMany status.reservedFor"}
    assert status_causes(api, one, allocation=ALLOCATION, reservedFor=[POD, POD]) == {
        "Duplicate status.reservedFor[1]"
    }
    assert not status_causes(api, one, allocation=ALLOCATION, reservedFor=many[:256])


def test_a_deleted_claim_takes_no_new_consumers(api: Api) -> None:
    """It stays until the one that it has is gone, and its finalizer."""
    one = created(api, CLAIMS, claim(), finalizers=["resource.kubernetes.io/delete-protection"])
    held = {"allocation": ALLOCATION, "reservedFor": [POD]}
    api.update_status(CLAIMS, {**one, "status": held})
    api.delete(CLAIMS, "default", "it")
    one = copied(api.get(CLAIMS, "default", "it"))
    more = {"allocation": ALLOCATION, "reservedFor": [POD, {**POD, "uid": "v"}]}

    assert status_causes(api, one, **more) == {"Forbidden status.reservedFor"}
    one = copied(api.update_status(CLAIMS, {**one, "status": {}}))
    one["metadata"]["finalizers"] = []
    api.update(CLAIMS, one)
    assert api.find(CLAIMS, "default", "it") is None


def test_reports_are_about_allocated_devices_and_go_with_them(api: Api) -> None:
    """The server drops them when the allocation is given back."""
    one = created(api, CLAIMS, claim())
    report = {key: RESULT[key] for key in ("driver", "pool", "device")}

    assert status_causes(api, one, devices=[report]) == {"Invalid status.devices[0]"}
    one = api.update_status(CLAIMS, {**one, "status": {"allocation": ALLOCATION, "devices": [report]}})
    assert api.update_status(CLAIMS, {**one, "status": {"devices": [report]}})["status"] == {}


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"networkData": {"ips": ["10.0.0.1/24", "2001:db8::1/64"]}}, set()),
        (
            {
                "networkData": {
                    "ips": [
                        "10.0.0.1",
                        "10.0.0.01/24",
                        "2001:DB8::1/64",
                        "::ffff:10.0.0.1/120",
                        "10.0.0.1/33",
                    ]
                }
            },
            {f"Invalid networkData.ips[{place}]" for place in range(5)},
        ),
        (
            {"conditions": [{}]},
            {
                "Invalid conditions[0].type",
                "NotSupported conditions[0].status",
                "Required conditions[0].reason",
                "Required conditions[0].lastTransitionTime",
            },
        ),
        (
            {
                "conditions": [
                    CONDITION,
                    {**CONDITION, "reason": "not one"},
                    {**CONDITION, "reason": "r" * 1025},
                ]
            },
            {
                "Duplicate conditions[1].type",
                "Invalid conditions[1].reason",
                "Duplicate conditions[2].type",
                "TooLong conditions[2].reason",
            },
        ),
        (
            {"conditions": [{**CONDITION, "observedGeneration": -1, "message": "m" * (32 * 1024 + 1)}]},
            {"Invalid conditions[0].observedGeneration", "TooLong conditions[0].message"},
        ),
    ],
)
def test_reports_are_refused_as_upstream_refuses_them(api: Api, report: Any, expected: set[str]) -> None:
    """Conditions as those of any kind, and addresses in their canonical form."""
    one = created(api, CLAIMS, claim())
    device = {key: RESULT[key] for key in ("driver", "pool", "device")}

    found = status_causes(api, one, allocation=ALLOCATION, devices=[{**device, **report}])

    assert found == {cause.replace(" ", " status.devices[0].") for cause in expected}


def test_conditions_and_messages_of_reports_are_shown(api: Api) -> None:
    """Given or not."""
    one = created(api, CLAIMS, claim())
    device = {key: RESULT[key] for key in ("driver", "pool", "device")}
    silent = {key: text for key, text in CONDITION.items() if key != "message"}
    status = {"allocation": ALLOCATION, "devices": [device]}

    one = copied(api.update_status(CLAIMS, {**one, "status": status}))
    assert one["status"]["devices"] == [{**device, "conditions": None}]
    one["status"]["devices"][0]["conditions"] = [silent]
    one = api.update_status(CLAIMS, one)
    assert one["status"]["devices"] == [{**device, "conditions": [{**silent, "message": ""}]}]


def test_a_write_of_the_status_changes_nothing_else(api: Api) -> None:
    """Neither the spec nor metadata."""
    one = created(api, CLAIMS, claim())
    metadata = {**one["metadata"], "labels": {"a": "b"}, "finalizers": ["example.com/held"]}

    after = api.update_status(
        CLAIMS, {**one, "metadata": metadata, "spec": {}, "status": {"allocation": ALLOCATION}}
    )

    assert after["spec"] == one["spec"]
    assert not {"labels", "finalizers"} & set(after["metadata"])


def test_consumers_are_merged_by_uid(api: Api) -> None:
    """A strategic merge patch takes one out, as the scheduler does when it gives up."""
    held = {"allocation": ALLOCATION, "reservedFor": [POD, {**POD, "uid": "v"}]}
    one = created(api, CLAIMS, claim())
    one["status"] = held
    schema = api.kind(api.resource(CLAIMS)).schema(api.resource(CLAIMS))
    patch = {"status": {"reservedFor": [{"$patch": "delete", "uid": "u"}]}}

    after = strategic(one, patch, schema)

    assert after["status"]["reservedFor"] == [{**POD, "uid": "v"}]


def test_slices_are_found_by_node_and_driver(api: Api) -> None:
    """As drivers watch their own."""
    created(api, SLICES, a_slice(), "a")
    created(api, SLICES, a_slice(nodeName="node-2"), "b")

    found = api.list(SLICES, fields="spec.nodeName=node-2,spec.driver=gpu.example.com")

    assert [one["metadata"]["name"] for one in found] == ["b"]


def test_tables_show_what_became_of_a_claim(api: Api) -> None:
    """As ``kubectl get`` prints claims and slices."""
    tables = Tables(api)

    def cells(resource: str) -> Any:
        table = tables(
            api.resource(resource), api.list(resource), include_object="None", columns=True, version="v1"
        )
        names = [one["name"] for one in table["columnDefinitions"]]
        return [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]

    created(api, SLICES, a_slice())
    one = created(api, CLAIMS, claim(), finalizers=["resource.kubernetes.io/delete-protection"])
    seen = [cells(CLAIMS)[0]["State"]]
    for status in ({"allocation": ALLOCATION}, {"allocation": ALLOCATION, "reservedFor": [POD]}):
        one = api.update_status(CLAIMS, {**one, "status": status})
        seen.append(cells(CLAIMS)[0]["State"])
    api.delete(CLAIMS, "default", "it")
    seen.append(cells(CLAIMS)[0]["State"])

    assert seen == ["pending", "allocated", "allocated,reserved", "deleted,allocated,reserved"]
    assert cells(SLICES) == [
        {"Name": "it", "Node": "node-1", "Driver": "gpu.example.com", "Pool": "node-1", "Age": "0s"}
    ]


def test_a_pod_reports_claims_that_it_names(api: Api) -> None:
    """By the names of its spec; those of extended resources are complete."""
    gpus = {name: {"example.com/gpu": "1"} for name in ("requests", "limits")}
    spec = {
        "containers": [{"name": "c", "image": "x:1", "resources": gpus}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
    }
    pod = copied(api.create("pods", {"metadata": {"name": "p", "namespace": "default"}, "spec": spec}))

    def reported(**status: Any) -> set[str]:
        body = {**copied(pod), "status": {**pod["status"], **status}}
        del body["metadata"]["resourceVersion"]
        return causes(api.update, "pods", body, Write(subresource="status"))

    known = {"name": "gpu", "resourceClaimName": "p-gpu-x"}
    assert not reported(resourceClaimStatuses=[known])
    assert reported(resourceClaimStatuses=[known, {"name": "other"}, {"name": "gpu"}]) == {
        "Invalid status.resourceClaimStatuses[1].name",
        "Duplicate status.resourceClaimStatuses[2].name",
    }
    assert reported(resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": ""}]) == {
        "Invalid status.resourceClaimStatuses[0].resourceClaimName"
    }
    here = "status.extendedResourceClaimStatus"
    fine = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    for mappings, expected in (
        ([fine], set()),
        ([], {f"Required {here}.requestMappings"}),
        ([{**fine, "containerName": "d"}], {f"Invalid {here}.requestMappings[0].containerName"}),
        ([{**fine, "resourceName": "cpu"}], {f"Invalid {here}.requestMappings[0].resourceName"}),
        ([{**fine, "requestName": "A_B"}], {f"Invalid {here}.requestName"}),
        ([fine, fine], {f"Duplicate {here}.requestMappings[1].{field}" for field in fine}),
    ):
        extended = {"resourceClaimName": "x", "requestMappings": mappings}
        assert reported(extendedResourceClaimStatus=extended) == expected


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ('device.attributes["gpu.example.com"].model == "a100"', ""),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0', ""),
        ('device.attributes["d"].version.isGreaterThan(semver("1.2.3"))', ""),
        ('has(device.driver) && device.attributes["d"].all(k, v, k != "")', ""),
        ("[1, 2].indexOf(1) == 0 && 1 < 2.0", ""),
        ('cel.bind(d, device, d.driver == "x")', ""),
        ("device.attributes", "must evaluate to bool or the unknown type, not "),
        ("device.nodeName == 'n'", "compilation failed: ERROR: <input>:1:7: "),
        ("device.driver > 1", "compilation failed: ERROR: <input>:1:15: "),
    ],
)
def test_expressions_are_compiled(api: Api, expression: str, fault: str) -> None:
    """One that does not compile, or is no condition, is refused with the reason."""
    message = ""
    try:
        created(api, CLASSES, {"selectors": selectors(expression)})
    except StatusError as error:
        message = error.details["causes"][0]["message"]

    assert fault in message
    assert bool(fault) == bool(message)
