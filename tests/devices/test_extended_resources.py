"""Requests for devices in place of extended resources, against a count of what runs at each moment."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from devices.builders import a_class
from plimsoll.devices.extended_resources import requests_for
from plimsoll.testing.builders import a_pod

GPU, OTHER = "example.com/gpu", "example.com/other"
#: How many of both resources a container requests, and whether it is a sidecar.
CONTAINERS = st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans())


def a_container(name: str, gpus: int, others: int, *, is_sidecar: bool = False) -> dict[str, Any]:
    asked = {GPU: str(gpus), OTHER: str(others), "cpu": "1"}
    requests = {each: amount for each, amount in asked.items() if amount != "0"}
    more = {"restartPolicy": "Always"} if is_sidecar else {}
    return {"name": name, "resources": {"requests": requests}, **more}


@given(st.lists(CONTAINERS, max_size=4), st.lists(CONTAINERS, min_size=1, max_size=3))
def test_as_many_devices_are_asked_for_as_are_used_at_most(
    first: list[tuple[int, int, bool]], then: list[tuple[int, int, bool]]
) -> None:
    """One init container runs after the other, next to the sidecars before it; then all others together."""
    inits = [
        a_container(f"i{at}", gpus, others, is_sidecar=stays)
        for at, (gpus, others, stays) in enumerate(first)
    ]
    mains = [a_container(f"c{at}", gpus, others) for at, (gpus, others, _) in enumerate(then)]
    pod = a_pod(initContainers=inits, containers=mains)
    served = {GPU: a_class("gpu"), OTHER: a_class("other")}

    found = requests_for(pod, [GPU, OTHER], served.get)

    for position, resource in enumerate((GPU, OTHER)):
        amounts = [each[position] for each in first]
        sidecars = [each[position] if each[2] else 0 for each in first]
        peak = sum(sidecars) + sum(each[position] for each in then)
        for at, each in enumerate(first):
            peak = max(peak, sum(sidecars[:at]) + (0 if each[2] else amounts[at]))
        counts = {
            each.name: each.exactly.count
            for each in found.requests
            if each.exactly is not None and each.exactly.device_class_name == served[resource].name
        }
        assert sum(counts.values()) == peak
        for name, amount in [
            *((f"i{at}", amount) for at, amount in enumerate(amounts)),
            *((f"c{at}", each[position]) for at, each in enumerate(then)),
        ]:
            mapped = [
                each.request for each in found.mappings if (each.container, each.resource) == (name, resource)
            ]
            assert sum(counts[each] for each in mapped) >= amount
            assert len(mapped) == len(set(mapped))
    assert len({each.name for each in found.requests}) == len(found.requests)


def test_a_resource_without_a_class_asks_for_no_device() -> None:
    pod = a_pod(containers=[a_container("c", 1, 1)])

    found = requests_for(pod, [GPU, OTHER], {OTHER: a_class("other")}.get)

    assert [each.resource for each in found.mappings] == [OTHER]
