"""plimsoll top as users see it: output of each format, and its page."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.commands import say
from cli.executed_page import check_page
from cli.golden_files import check
from cli.loaded_cluster import write_dump
from cli.planning_scenes import a_rebalancing, saved
from inspection.contents import a_node_document, a_pod_document, a_policy_document

#: When the dump was written: 20 seconds after the readings.
TAKEN = datetime(2026, 2, 1, 0, 0, 20, tzinfo=UTC).timestamp()


QUEUES: list[dict[str, Any]] = [
    {"name": "shop", "weight": 3},
    {"name": "web", "parent": "shop", "guaranteed": {"cpu": "2"}, "capability": {"cpu": "3"}},
    {"name": "db", "parent": "shop"},
    {"name": "big"},
]


def a_metric(name: str, cpu: str, memory: str, taken: str, namespace: str = "") -> dict[str, Any]:
    usage = {"cpu": cpu, "memory": memory}
    content = {"containers": [{"name": "main", "usage": usage}]} if namespace else {"usage": usage}
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics" if namespace else "NodeMetrics",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "timestamp": taken,
        "window": "15s",
        **content,
    }


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cluster as a file: two nodes are measured, and one of them has a pod that is not."""
    path = tmp_path_factory.mktemp("top") / "cluster.json"
    write_dump(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    now = "2026-02-01T00:00:00Z"
    for each in content["items"]:
        if each["kind"] == "Pod":
            each.setdefault("status", {})["startTime"] = "2026-01-31T10:00:00Z"
        if each["kind"] == "SchedulingPolicy":
            each["spec"]["scheduling"]["fairShare"] = {"queues": QUEUES}
        if each["kind"] == "Pod":
            name = each["metadata"]["name"].partition("-")[0]
            each["metadata"].setdefault("labels", {})["plimsoll.dev/queue"] = name
    content["items"] += [
        a_metric("node-1", "3100m", "2Gi", now),
        a_metric("node-2", "400m", "1Gi", now),
        a_metric("web-a", "1700m", "1Gi", now, "shop"),
        a_metric("web-b", "1300m", "512Mi", now, "shop"),
        a_metric("web-c", "300m", "256Mi", now, "shop"),
    ]
    path.write_text(json.dumps(content), encoding="utf-8")
    os.utime(path, (TAKEN, TAKEN))
    return str(path)


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
@pytest.mark.parametrize("what", ["nodes", "pods"])
def test_answers_look_like_this(dump: str, form: str, what: str) -> None:
    said = say("top", what, "--from", dump, "-o", form)

    assert (said.code, said.err) == (0, "")
    check(f"top-{what}", "loaded", form, said.out)


def test_the_namespace_is_heeded(dump: str) -> None:
    said = say("top", "pods", "-n", "elsewhere", "--from", dump)

    assert (said.code, said.out) == (0, "no pod has a node\n")


def test_a_cluster_without_readings_says_so(tmp_path: Path) -> None:
    said = say("top", "nodes", "--from", write_dump(tmp_path / "cluster.json"))

    assert said.code == 0
    assert "note: " in said.out


def test_the_page_says_what_it_prints(dump: str, tmp_path: Path) -> None:
    assert check_page("top.md", dump, tmp_path) == 3


def test_pods_that_request_a_resource_are_listed_with_what_they_request(tmp_path: Path) -> None:
    """Placed ones, those that request most first; an unknown one is an error that names those there are."""
    gpu = "example.com/gpu"
    node = a_node_document("big")
    node["status"]["allocatable"][gpu] = "8"
    documents = [node, a_pod_document("plain", "big")]
    for name, amount in (("one", 1), ("three", 3)):
        documents.append(a_pod_document(name, "big", owner=name))
        documents[-1]["spec"]["containers"][0]["resources"]["requests"][gpu] = str(amount)
    documents.append(a_pod_document("waits", owner="waits"))
    documents[-1]["spec"]["containers"][0]["resources"]["requests"][gpu] = "2"
    cluster = str(tmp_path / saved(tmp_path, *documents))

    said = say("top", "pods", "--resource", gpu, "--from", cluster, "-o", "json")
    wrong = say("top", "pods", "--resource", "example.com/gpus", "--from", cluster)

    found = [(each["pod"], each["requested"]) for each in json.loads(said.out)["pods"]]
    assert found == [("shop/three", 3), ("shop/one", 1)]
    assert wrong.err == f"error: no node and no pod has example.com/gpus; there are cpu, {gpu}, memory\n"


def test_prices_are_those_of_the_nodes_and_of_a_table(tmp_path: Path) -> None:
    """A node's own price comes first; requests say who pays; a file that is no table is refused."""
    own, typed, unknown = (a_node_document(name) for name in ("own", "typed", "unknown"))
    own["metadata"]["annotations"] = {"plimsoll.dev/price-per-hour": "0.8 USD"}
    for each in (own, typed):
        each["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "m"
    pods = [a_pod_document("a", "own"), a_pod_document("b", "typed", owner="b")]
    for pod in pods:
        pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "2", "memory": "2Gi"}
    cluster = str(tmp_path / saved(tmp_path, own, typed, unknown, *pods))
    (tmp_path / "prices.yaml").write_text("currency: EUR\nnodes:\n- instanceType: m\n  perHour: 0.4\n")
    (tmp_path / "none.yaml").write_text("currency: EUR\n")
    (tmp_path / "two.yaml").write_text("currency: EUR\nnodes: []\n---\ncurrency: USD\nnodes: []\n")

    given = ("--prices", str(tmp_path / "prices.yaml"), "--from", cluster)
    nodes, shares = say("top", "nodes", *given), say("top", "namespaces", *given, "-o", "json")
    wrong = say("top", "nodes", "--prices", str(tmp_path / "none.yaml"), "--from", cluster)
    two = say("top", "nodes", "--prices", str(tmp_path / "two.yaml"), "--from", cluster)
    missing = say("top", "nodes", "--prices", str(tmp_path / "gone.yaml"), "--from", cluster)

    prices = [line.split()[6:8] for line in nodes.out.splitlines() if line.startswith("own ")]
    assert prices == [["0.8", "USD"]]
    assert "all nodes cost 0.4 EUR and 0.8 USD an hour; the price of 1 node is not known" in nodes.out
    assert json.loads(shares.out)["namespaces"][0]["costPerHour"] == {"USD": 0.3, "EUR": 0.15}
    assert wrong.code != 0
    assert "it needs currency, such as EUR, and a list nodes" in wrong.err
    assert "two.yaml has 2 documents; a table of prices is one, in one currency" in two.err
    assert "cannot be read: No such file" in missing.err


def racked() -> list[dict[str, Any]]:
    """A group in two racks, one in one of them, and a node without the label."""
    documents: list[dict[str, Any]] = []
    for name, rack in (("a0", "a"), ("a1", "a"), ("b0", "b"), ("bare", "")):
        documents.append(a_node_document(name, cpu="4"))
        documents[-1]["metadata"]["labels"] |= {"example.com/rack": rack} if rack else {}
    for group, nodes in (("train", ("a0", "a0", "b0")), ("eval", ("a1", "a1"))):
        wish = {"minMember": 2, "topology": {"preferred": "example.com/rack"}}
        metadata = {"name": group, "namespace": "shop"}
        documents.append({"kind": "PodGroup", "metadata": metadata, "spec": wish})
        for number, node in enumerate(nodes):
            documents.append(a_pod_document(f"{group}-{number}", node, cpu="1", owner=group))
            documents[-1]["metadata"]["labels"]["plimsoll.dev/pod-group"] = group
    return documents


def test_racks_are_listed_with_their_groups(tmp_path: Path) -> None:
    """By the label that groups name, or another one; without any label the answer says which option."""
    cluster = str(tmp_path / saved(tmp_path, *racked()))

    said = say("top", "racks", "--from", cluster)
    other = say("top", "racks", "--label", "kubernetes.io/hostname", "--from", cluster, "-o", "json")
    (tmp_path / "plain").mkdir()
    plain = tmp_path / "plain" / saved(tmp_path / "plain", a_node_document("n"))
    none = say("top", "racks", "--from", str(plain))

    assert said.out == (
        "2 domains of label example.com/rack; 2 groups, of which 1 runs in more than one\n\n"
        "DOMAIN   NODES   WITHOUT GROUP   PODS   CPU   REQUESTED   GROUPS\n"
        "a            2               0      4     8           4   "
        "PodGroup shop/eval (2), PodGroup shop/train (2)\n"
        "b            1               0      1     4           1   PodGroup shop/train (1)\n"
        "<none>       1               1      0     4           0   <none>\n"
    )
    assert len(json.loads(other.out)["domains"]) == 4
    assert none.out.startswith("no group names a topology label; name one with --label")


@pytest.mark.parametrize("asked", [("plan",), ("whatif", "--add-node", "n9")])
def test_a_report_draws_racks_with_their_groups(tmp_path: Path, asked: tuple[str, ...]) -> None:
    """Parts of a bar add up to the nodes that have members."""
    page = tmp_path / "plan.html"
    policy = a_policy_document("tidy", rebalancing=a_rebalancing("RemoveDuplicates"))
    file = str(tmp_path / saved(tmp_path, *racked(), policy))

    said = say(*asked, "--from", file, "--report", str(page))

    html = page.read_text(encoding="utf-8")
    assert said.code in (0, 2), said
    assert "Groups by domain" in html
    assert '<strong>a</strong><svg viewBox="0 0 400 18"' in html
    assert "A PodGroup shop/train: 2 pods" in html
    assert "1 of 1 node without a group" in html
    assert html.count('width="200.0" height="18"') == 2


def test_a_screen_of_a_large_cluster_has_the_fullest_nodes_first(tmp_path: Path) -> None:
    """By requests where nothing is measured; fifty of them, all with -o wide and in JSON."""
    names = [f"node-{each:02}" for each in range(60)]
    pods = [a_pod_document(f"p-{each}", each, cpu=f"{10 * int(each[-2:])}m") for each in names]
    file = str(tmp_path / saved(tmp_path, *map(a_node_document, names), *pods))

    lines = say("top", "nodes", "--from", file).out.splitlines()
    wide = say("top", "nodes", "--from", file, "-o", "wide").out
    listed = json.loads(say("top", "nodes", "--from", file, "-o", "json").out)["nodes"]

    assert lines[0].startswith("most cpu is requested of node node-59")
    assert lines[2] == "The first 50 of 60; -o wide lists all:"
    assert [each.split()[0] for each in lines[4:54]] == sorted(names, reverse=True)[:50]
    assert sum(each.startswith("node-") for each in wide.splitlines()) == len(listed) == 60
