"""deploy/alerts: taken by promtool, tried by its unit tests, each with a page that says what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.manifests import DEPLOY, run
from deploy.test_dashboards import mixing, unknown
from deploy.tools import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CASES = [ROOT / "tests/deploy" / name for name in ("alerts.yaml", "alerts_of_days.yaml")]
RUNBOOKS = ROOT / "docs/runbooks"

#: Where the pages are read; an Alertmanager cannot follow a path.
SITE = "https://plimsoll.dev/runbooks/"


def groups() -> dict[str, Any]:
    """The rules, as Prometheus itself reads them."""
    document = yaml.safe_load((DEPLOY / "alerts/prometheus_rule.yaml").read_text(encoding="utf-8"))
    spec: dict[str, Any] = document["spec"]
    return spec


RULES = groups()["groups"][0]["rules"]
NAMES = [rule["alert"] for rule in RULES]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A file of the rules, with the cases in the same folder."""
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(groups()), encoding="utf-8")
    for each in CASES:
        (tmp_path / each.name).write_text(each.read_text(encoding="utf-8"), encoding="utf-8")
    return path


def test_promtool_takes_the_rules(rules: Path) -> None:
    """And says how many there are."""
    assert f"SUCCESS: {len(RULES)} rules found" in run("promtool", "check", "rules", str(rules))


def test_each_alert_fires_when_it_should_and_not_before(rules: Path) -> None:
    """The cases of both files; each alert has one of both kinds."""
    run("promtool", "test", "rules", *(str(rules.parent / each.name) for each in CASES))

    tried = [
        (case["alertname"], bool(case["exp_alerts"]))
        for each in CASES
        for test in yaml.safe_load(each.read_text(encoding="utf-8"))["tests"]
        for case in test["alert_rule_test"]
    ]
    assert {name for name, fires in tried if fires} == set(NAMES)
    assert {name for name, fires in tried if not fires} == set(NAMES)


def test_a_rule_that_is_changed_fails_its_case(rules: Path) -> None:
    """The cases can tell."""
    rules.write_text(rules.read_text(encoding="utf-8").replace("> 400", "> 4000"), encoding="utf-8")
    cases = rules.parent / CASES[0].name
    document = yaml.safe_load(cases.read_text(encoding="utf-8"))
    document["tests"] = [each for each in document["tests"] if "PlimsollWatchStale" in str(each)]
    cases.write_text(yaml.safe_dump(document), encoding="utf-8")

    with pytest.raises(AssertionError, match="PlimsollWatchStale"):
        run("promtool", "test", "rules", str(cases))


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_an_alert_asks_for_metrics_that_exist_and_says_what_to_do(rule: dict[str, Any]) -> None:
    """Its page has what it means, where to look, with which command, and what to do."""
    url = rule["annotations"]["runbook_url"]
    assert url == f"{SITE}{rule['alert']}.html"
    page = RUNBOOKS / f"{rule['alert']}.md"
    text = page.read_text(encoding="utf-8")

    assert unknown(rule["expr"]) == set()
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert text.startswith(f"# {rule['alert']}\n")
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == ["What it means", "Where to look", "What to do"]
    assert "```console\n$ kubectl " in text


def test_there_is_no_page_without_its_alert() -> None:
    """Pages of alerts that are gone mislead."""
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == set(NAMES)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_no_rule_mixes_the_clusters_of_a_ruler(rule: dict[str, Any]) -> None:
    """What is grouped or joined by labels is so by the cluster, too; nothing is taken over all of them."""
    assert mixing(rule["expr"]) == []


def test_what_mixes_clusters_is_found() -> None:
    for wrong in (
        "max by (job) (a) == 0",
        "max(a) == 1",
        "a and on (job) b",
        "a unless on () max by (cluster) (b)",
        "sum without (cluster) (rate(a[5m]))",
    ):
        assert mixing(wrong), wrong
    assert mixing("sum without (instance) (a)") == mixing("topk(10, sum by (cluster) (a))") == []
    assert mixing("max by (cluster, job) (a) == 0 or absent(a)") == []
