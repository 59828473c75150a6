"""Quantities and requests, against the arithmetic of the API server and the kubelet."""

from typing import Any

import pytest

from promises.quantities import milli, requests


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1000),
        (3, 3000),
        ("0.5", 500),
        (".5", 500),
        ("1.", 1000),
        ("+2", 2000),
        ("100m", 100),
        ("1n", 1),  # rounded up
        ("1500u", 2),
        ("2k", 2_000_000),
        ("1Ki", 1_024_000),
        ("1.5Gi", 1_610_612_736_000),
        ("1E", 10**21),
        ("1Ei", 1000 * 2**60),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("12e-1", 1200),
        ("-1", -1000),
    ],
)
def test_quantities(text: Any, expected: int) -> None:
    """In thousandths; 1E is an exa, 1E3 a thousand."""
    assert milli(text) == expected


@pytest.mark.parametrize("text", ["", "one", "1K", "1mi", "1 Gi", "1e", "0x1"])
def test_what_is_no_quantity_is_an_error(text: str) -> None:
    """It is not taken for 0."""
    with pytest.raises(ValueError, match="no quantity"):
        milli(text)


def container(cpu: str, **rest: Any) -> dict[str, Any]:
    """A container that asks for cpu."""
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **rest}


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container("1"), container("2")]}, 3000, id="containers-together"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("2"), container("3")]},
            3000,  # one after the other: the largest, which is more than 1
            id="init-containers-one-by-one",
        ),
        pytest.param(
            {"containers": [container("4")], "initContainers": [container("3")]}, 4000, id="init-is-smaller"
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("2", **SIDECAR)]},
            3000,  # the sidecar goes on running
            id="sidecar",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("2", **SIDECAR), container("5"), container("1", **SIDECAR)],
            },
            7000,  # the second one while the first sidecar runs: 2 + 5, more than 1 + 2 + 1
            id="init-with-sidecar",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("5"), container("2", **SIDECAR)],
            },
            5000,  # alone, before the sidecar is started
            id="init-before-sidecar",
        ),
        pytest.param({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250, id="overhead"),
        pytest.param(
            {"containers": [container("1")], "resources": {"requests": {"cpu": "5"}}}, 5000, id="of-the-pod"
        ),
        pytest.param({"containers": [{"name": "c"}]}, None, id="nothing"),
        pytest.param({"containers": [{"name": "c", "resources": {}}]}, None, id="empty"),
    ],
)
def test_requests_of_pods(spec: dict[str, Any], cpu: int | None) -> None:
    """As the kubelet counts them; a pod is one of ``pods``."""
    found = requests({"spec": spec})

    assert found.get("cpu") == cpu
    assert found["pods"] == 1000
