"""Quantities as integers and requests of pods."""

from typing import Any

import pytest

from roadstead.schemas.quantities import milli, pod_requests


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("1", 1000),
        ("250m", 250),
        ("1.5", 1500),
        ("1Ki", 1_024_000),
        ("0.5Gi", 2**29 * 1000),
        ("1e3", 1_000_000),
        ("2E", 2 * 10**21),
        ("1n", 1),
        (2, 2000),
    ],
)
def test_quantities_are_exact(quantity: Any, expected: Any) -> None:
    """In thousandths, rounded up."""
    assert milli(quantity) == expected


@pytest.mark.parametrize("quantity", ["", "m", "1 Gi", "one", "1GiB"])
def test_what_is_no_quantity_is_refused(quantity: Any) -> None:
    """The sentence quotes it."""
    with pytest.raises(ValueError, match="is no quantity"):
        milli(quantity)


def container(cpu: Any, **more: Any) -> Any:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container("1"), container("500m")]}, 1500, id="containers-add-up"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("3")]},
            3000,
            id="the-greater-counts",
        ),
        pytest.param(
            # containers 1 + sidecar 1 = 2; init container 1.5 together with the sidecar 1 = 2.5
            {
                "containers": [container("1")],
                "initContainers": [container("1", restartPolicy="Always"), container("1500m")],
            },
            2500,
            id="a-sidecar-runs-beside",
        ),
        pytest.param({"containers": [container("1")], "overhead": {"cpu": "100m"}}, 1100, id="overhead"),
        pytest.param(
            {"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}, 4000, id="pod-level"
        ),
    ],
)
def test_what_a_pod_requests(spec: Any, cpu: Any) -> None:
    """As component-helpers' PodRequests; and it is one pod."""
    requests = pod_requests({"spec": spec})

    assert requests["cpu"] == cpu
    assert requests["pods"] == 1000
