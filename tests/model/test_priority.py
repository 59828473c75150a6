"""Quality of service, and which pod is disturbed first."""

from typing import Any

import pytest

from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from plimsoll.model.priority import PREFER_NO_EVICTION, low_to_high, quality_of_service

FULL = {"cpu": "1", "memory": "1Gi"}


def a_pod(
    name: Any = "p",
    *containers: tuple[dict[str, Any], ...],
    init: list[tuple[dict[Any, Any], ...]] | tuple[Any, ...] = (),
    priority: Any = None,
    qos: Any = "",
    annotations: dict[str, Any] | None = None,
) -> Pod:
    def build(pair: tuple[dict[str, Any], ...]) -> Container:
        return Container(resources=ResourceRequirements(requests=pair[0], limits=pair[1]))

    return Pod(
        metadata=ObjectMeta(name=name, namespace="ns", annotations=annotations or {}),
        spec=PodSpec(
            containers=tuple(map(build, containers)),
            init_containers=tuple(map(build, init)),
            priority=priority,
        ),
        status=PodStatus(qos_class=qos),
    )


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod("p", ({}, {})), "BestEffort", id="nothing-asked"),
        pytest.param(a_pod("p", ({"cpu": "0"}, {})), "BestEffort", id="zero-is-nothing"),
        pytest.param(a_pod("p", ({"nvidia.com/gpu": "1"}, {})), "BestEffort", id="only-cpu-and-memory-count"),
        pytest.param(a_pod("p", (FULL, FULL)), "Guaranteed", id="requests-equal-limits"),
        pytest.param(a_pod("p", (FULL, {"cpu": "1000m", "memory": "1024Mi"})), "Guaranteed", id="by-value"),
        pytest.param(a_pod("p", (FULL, FULL), ({}, {})), "Burstable", id="one-container-without-limits"),
        pytest.param(a_pod("p", (FULL, FULL), init=[({}, {})]), "Burstable", id="init-containers-count"),
        pytest.param(a_pod("p", ({"cpu": "1"}, FULL)), "Burstable", id="requests-below-limits"),
        pytest.param(a_pod("p", (FULL, FULL), qos="Burstable"), "Burstable", id="the-status-decides"),
    ],
)
def test_quality_of_service_follows_requests_and_limits(pod: Pod, expected: str) -> None:
    """The API server's own verdict wins; without it the containers' cpu and memory decide."""
    assert quality_of_service(pod) == expected


def test_the_least_important_pod_comes_first() -> None:
    """No priority, then ascending priority, then quality, then the wish to be spared, then the name."""
    spared = {PREFER_NO_EVICTION: ""}
    ordered = [
        a_pod("z"),
        a_pod("negative", priority=-5),
        a_pod("a", priority=0),
        a_pod("b", priority=0),
        a_pod("a-spared", priority=0, annotations=spared),
        a_pod("burstable", ({"cpu": "1"}, {}), priority=0),
        a_pod("guaranteed", (FULL, FULL), priority=0),
        a_pod("high", priority=10),
    ]

    shuffled = ordered[1::2] + ordered[::2]

    assert sorted(shuffled, key=low_to_high) == ordered
