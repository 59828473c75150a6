"""Usage from Prometheus queries: the node of a series, units, and values that do not count."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.v1alpha1.prometheus import NodeQuerySpec
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.load.readings import LARGEST
from plimsoll.model.kinds.node import Node, NodeAddress
from plimsoll.ports.usage import UsageReading
from plimsoll.testing.builders import a_node
from plimsoll.usage.queried_usage import node_usage, pod_usage, sound

NOW = 1_800_000_000.0
CORE = GIB = 10**9
CPU = {"cpu": NodeQuerySpec(query="cpu", unit="Cores")}


def addressed(name: str, address: str) -> Node:
    node = a_node(name, cpu="4", memory="8Gi")
    addresses = (
        NodeAddress(type="Hostname", address="localhost"),
        NodeAddress(type="InternalIP", address=address),
    )
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, addresses=addresses))


NODES = {
    "n1": addressed("n1", "10.0.0.1"),
    "n2": addressed("n2", "10.0.0.2"),
    "node.example.com": addressed("node.example.com", "fd00::3"),
}


def cores(*samples: Sample, label: str | None = None) -> dict[str, Any]:
    query = NodeQuerySpec(query="cpu", unit="Cores", node_label=label)
    return {
        name: usage["cpu"] / CORE
        for name, usage in node_usage({"cpu": samples}, {"cpu": query}, NODES, NOW).items()
        if usage
    }


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"node": "n1", "instance": "n2"}, "n1"),
        ({"node": "the first", "instance": "n2"}, "n2"),
        ({"instance": "n1"}, "n1"),
        ({"instance": "n1:9100"}, "n1"),
        ({"instance": "node.example.com:9100"}, "node.example.com"),
        ({"instance": "10.0.0.2"}, "n2"),
        ({"instance": "10.0.0.2:9100"}, "n2"),
        ({"instance": "fd00::3"}, "node.example.com"),
        ({"instance": "[fd00::3]:9100"}, "node.example.com"),
        ({"instance": "localhost:9100"}, ""),
        ({"instance": "n9"}, ""),
        ({"instance": ""}, ""),
        ({}, ""),
    ],
)
def test_the_node_of_a_series(labels: Mapping[str, str], node: str) -> None:
    """By the label node, else by instance: a name or an internal IP, with or without a port."""
    assert list(cores(Sample(labels, 1.0, NOW))) == ([node] if node else [])


def test_the_label_can_be_chosen() -> None:
    """Then no other one counts."""
    first = Sample({"kubernetes_node": "n1", "node": "n2"}, 1.0, NOW)

    assert cores(first, Sample({"node": "n2"}, 1.0, NOW), label="kubernetes_node") == {"n1": 1.0}


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        *((value, NOW) for value in (math.nan, math.inf, -math.inf, -0.001, 1e300, 8.1)),
        *((1.0, taken) for taken in (NOW + 61, NOW - 300, math.inf, math.nan, 0.0)),
    ],
)
def test_a_hostile_value_harms_its_node_only(value: float, taken: float) -> None:
    """A node of 4 cores does not use 8.1; the other node is measured."""
    assert cores(Sample({"node": "n1"}, value, taken), Sample({"node": "n2"}, 4.1, NOW)) == {"n2": 4.1}


def test_contradicting_values_do_not_count() -> None:
    """Equal ones, as of two replicas of an exporter, are one."""
    contradiction = [Sample({"node": "n1"}, value, NOW) for value in (1.0, 2.0, 1.0)]
    same = [Sample({"node": "n2"}, 1.5, NOW)] * 2

    assert cores(*contradiction, *same) == {"n2": 1.5}


def test_units() -> None:
    """Cores, bytes, shares of the node's allocatable, and percent of what is no amount; 1.05 counts as 1."""
    queries = {
        "cpu": NodeQuerySpec(query="a", unit="Share"),
        "memory": NodeQuerySpec(query="b", unit="Bytes"),
        "example.com/io": NodeQuerySpec(query="c", unit="Share"),
    }
    answers = {
        "cpu": [Sample({"node": "n1"}, 0.5, NOW), Sample({"node": "n2"}, 1.05, NOW)],
        "memory": [Sample({"node": "n1"}, 2.0**30, NOW), Sample({"node": "n2"}, 0.0, NOW)],
        "example.com/io": [Sample({"node": "n1"}, 0.25, NOW), Sample({"node": "n2"}, 1.2, NOW)],
    }

    usage = node_usage(answers, queries, NODES, NOW)

    assert usage["n1"] == {"cpu": 2 * CORE, "memory": 2**30 * 10**9, "example.com/io": 25 * 10**9}
    assert usage["n2"] == {"cpu": 4 * CORE, "memory": 0}


def test_a_query_without_an_answer_is_missing() -> None:
    """The others count."""
    queries = {**CPU, "memory": NodeQuerySpec(query="b", unit="Bytes")}

    assert node_usage({"cpu": [Sample({"node": "n1"}, 1.0, NOW)]}, queries, NODES, NOW) == {
        "n1": {"cpu": CORE}
    }


def test_containers_of_a_pod_are_added_up() -> None:
    """One that makes no sense leaves the pod out."""
    web, db = {"namespace": "a", "pod": "web"}, {"namespace": "a", "pod": "db"}
    samples = [Sample(web, 0.25, NOW), Sample(web, 0.5, NOW), Sample(db, 1.0, NOW), Sample(db, -1.0, NOW)]

    assert pod_usage({"cpu": samples}, NOW) == {"a/web": {"cpu": CORE * 3 // 4}}


VALUES = st.one_of(st.floats(), st.floats(0, 8), st.sampled_from([1e300, -1.0, 5e-324]))
TIMES = st.one_of(st.floats(), st.floats(NOW - 400, NOW + 100))
LABELS = st.dictionaries(
    st.sampled_from(["node", "instance", "namespace", "pod"]),
    st.sampled_from(["n1", "n2", "n1:1", "10.0.0.1:9", "[::1", "a:b:c", "\ud800", ""]),
)
SAMPLES = st.lists(st.builds(Sample, LABELS, VALUES, TIMES), max_size=6)


@given(SAMPLES, SAMPLES, st.sampled_from(["Share", "Cores"]))
def test_any_answer_gives_sound_amounts(
    nodes: list[Sample], pods: list[Sample], unit: Literal["Share", "Cores"]
) -> None:
    """No series breaks a run, and no amount is negative or more than twice what the node has."""
    queries = {"cpu": NodeQuerySpec(query="q", unit=unit)}

    for name, usage in node_usage({"cpu": nodes}, queries, NODES, NOW).items():
        assert name in NODES
        assert 0 <= usage.get("cpu", 0) <= 8 * CORE
    for usage in pod_usage({"cpu": pods}, NOW).values():
        assert 0 <= usage["cpu"] <= len(pods) * LARGEST[0]


def test_readings_that_make_no_sense() -> None:
    """Amounts that no machine has, and a time that has not come."""
    fine = UsageReading("n1", {"cpu": CORE, "memory": 0}, NOW + 60)
    others = [
        UsageReading("n2", {"cpu": -1, "memory": 0}, NOW),
        UsageReading("n2", {"cpu": 0, "memory": 2**61 * 10**9}, NOW),
        UsageReading("n2", {"cpu": 0, "memory": 0}, NOW + 61),
        UsageReading("n2", {"example.com/gpu": 1}, NOW),
    ]

    assert sound([fine, *others], NOW) == [fine]


def test_a_megabyte_of_series_of_unknown_nodes() -> None:
    """They cost their reading, and nothing is kept of them."""
    many = [Sample({"instance": f"10.9.{n >> 8}.{n & 255}:9100"}, 0.5, NOW) for n in range(10_000)]

    assert cores(*many, Sample({"node": "n1"}, 1.0, NOW)) == {"n1": 1.0}
