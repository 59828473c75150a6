"""plimsoll lint, through the command: on a snapshot and on manifests, in all formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from cli.commands import say
from cli.golden_files import check
from cli.planning_scenes import saved
from inspection.contents import a_node_document, a_pod_document, a_policy_document
from plimsoll.version import __version__

MANIFESTS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop, labels: {tier: front}}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: cart}}
    spec:
      schedulerName: plimsol
      nodeSelector: {disk: ssd}
      containers: [{name: app, image: "app:1"}, {name: proxy, image: "proxy:1"}]
      volumes: [{name: cache, emptyDir: {}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: cart, namespace: shop}
spec: {minAvailable: 3, selector: {matchLabels: {app: cart}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with a snapshot and manifests."""
    monkeypatch.chdir(tmp_path)
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop", "uid": "web"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }
    lonely = a_pod_document("lonely", "n1", owner="lonely", namespace="tools", schedulerName="gone")
    del lonely["metadata"]["ownerReferences"]
    pods = [a_pod_document("web-1", "n1"), a_pod_document("web-2", "n2"), lonely]
    nodes = [a_node_document("n1"), a_node_document("n2")]
    saved(tmp_path, *nodes, *pods, budget, a_policy_document())
    (tmp_path / "cart.yaml").write_text(MANIFESTS, encoding="utf-8")
    return tmp_path


FORMATS = ["table", "wide", "json", "yaml", "junit", "sarif"]


@pytest.mark.parametrize("form", FORMATS)
def test_of_a_snapshot(folder: Path, form: str) -> None:
    """All namespaces, the worst first; the exit code says that something was found."""
    said = say("lint", "--from", "cluster.plimsoll", "-o", form)

    assert said.code == 2
    check("lint", "snapshot", form, said.out.replace(f'"{__version__}"', '"VERSION"'))


@pytest.mark.parametrize("form", ["table", "json", "sarif"])
def test_of_manifests_in_a_snapshot(folder: Path, form: str) -> None:
    """What is wrong with them in that cluster, and nothing of what is there already."""
    said = say("lint", "-f", "cart.yaml", "--from", "cluster.plimsoll", "-o", form)

    assert said.code == 2
    check("lint", "manifests", form, said.out.replace(f'"{__version__}"', '"VERSION"'))


@pytest.mark.parametrize("form", ["table", "junit"])
def test_of_manifests_alone(folder: Path, form: str) -> None:
    """Rules that need a cluster are named."""
    said = say("lint", "-f", "cart.yaml", "--offline", "-o", form)

    assert said.code == 2
    check("lint", "offline", form, said.out)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--rule", "local-storage"), 0),
        (("--rule", "local-storage", "--fail-on", "info"), 2),
        (("--rule", "no-requests"), 2),
        (("--rule", "no-requests", "--fail-on", "error"), 0),
        (("--rule", "no-requests", "--skip", "no-requests"), 0),
        (("--rule", "budget-blocks-all", "--fail-on", "error"), 2),
        (("--rule", "budget-blocks-all", "-l", "app=cart"), 0),
        (("--rule", "no-requests", "-l", "app=cart"), 2),
    ],
)
def test_what_the_exit_code_says(folder: Path, words: tuple[str, ...], code: int) -> None:
    """2 when a finding is as bad as --fail-on, by default a warning."""
    assert say("lint", "-f", "cart.yaml", "--offline", *words).code == code


def test_a_namespace_alone(folder: Path) -> None:
    """The neighbours are looked at, and not judged."""
    found = json.loads(say("lint", "--from", "cluster.plimsoll", "-n", "tools", "-o", "json").out)

    assert {each["namespace"] for each in found["findings"]} == {"tools"}
    assert (found["workloads"], found["budgets"]) == (1, 0)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("unknown-rule", ("--rule", "no-request")),
        ("unknown-severity", ("--fail-on", "bad")),
        ("offline-alone", ("--offline",)),
        ("not-of-its-kind", ("-f", "wrong.yaml", "--offline")),
    ],
)
def test_what_cannot_be_judged(folder: Path, case: str, words: tuple[str, ...]) -> None:
    """One line, and exit code 1."""
    wrong = {
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": 7}}},
    }
    (folder / "wrong.yaml").write_text(yaml.safe_dump(wrong), encoding="utf-8")

    said = say("lint", *words)

    assert (said.code, said.out) == (1, "")
    check("lint", case, "error", said.err)


@pytest.mark.parametrize("strange", [7, "x", [1], None, {"template": 3}, {"template": {"spec": {}}}])
@pytest.mark.parametrize("kind", ["Deployment", "CronJob", "Pod", "SchedulingPolicy", "PodDisruptionBudget"])
def test_strange_manifests_are_judged_or_refused(folder: Path, kind: str, strange: Any) -> None:
    """Without a traceback."""
    (folder / "strange.yaml").write_text(
        yaml.safe_dump({"kind": kind, "metadata": strange, "spec": strange}), "utf-8"
    )

    assert say("lint", "-f", "strange.yaml", "--offline").code in (0, 1, 2)


def test_junit_counts_what_is_in_it(folder: Path) -> None:
    """CI systems add the numbers up; failures are findings from --fail-on."""
    root = ET.fromstring(say("lint", "-f", "cart.yaml", "--offline", "-o", "junit").out)

    cases, failures = root.findall(".//testcase"), root.findall(".//failure")
    assert (root.get("tests"), root.get("failures")) == (str(len(cases)), str(len(failures)))
    for suite in root:
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("skipped") == str(len(suite.findall("testcase/skipped")))
    assert {each.get("type") for each in failures} == {"error", "warning"}


def test_sarif_has_what_the_standard_requires(folder: Path) -> None:
    """Sections 3.13 to 3.27 of SARIF 2.1.0: the required properties, and indexes that agree."""
    report = json.loads(say("lint", "-f", "cart.yaml", "--from", "cluster.plimsoll", "-o", "sarif").out)

    (run,) = report["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert report["version"] == "2.1.0"
    assert run["tool"]["driver"]["name"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert all(each["executionSuccessful"] is True for each in run["invocations"])
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == "cart.yaml"


def test_an_empty_namespace_is_named(folder: Path) -> None:
    """With the flag that looks elsewhere."""
    said = say("lint", "--from", "cluster.plimsoll", "-n", "bank")

    assert said.code == 0
    _, second, *_ = said.out.splitlines()
    assert second == "Namespace bank has no workloads and no budgets; -A looks in all namespaces."
