"""deploy/alerts: taken by promtool, tried by its unit tests, each with a page that says what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.manifests import DEPLOY, run
from deploy.test_dashboards import unknown
from deploy.tools import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CASES = ROOT / "tests/deploy/alerts.yaml"
RUNBOOKS = ROOT / "docs/runbooks"


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
    (tmp_path / CASES.name).write_text(CASES.read_text(encoding="utf-8"), encoding="utf-8")
    return path


def test_promtool_takes_the_rules(rules: Path) -> None:
    """And says how many there are."""
    assert f"SUCCESS: {len(RULES)} rules found" in run("promtool", "check", "rules", str(rules))


def test_each_alert_fires_when_it_should_and_not_before(rules: Path) -> None:
    """The cases of alerts.yaml; each alert has one of both kinds."""
    run("promtool", "test", "rules", str(rules.parent / CASES.name))

    tried = [
        (case["alertname"], bool(case["exp_alerts"]))
        for test in yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]
        for case in test["alert_rule_test"]
    ]
    assert {name for name, fires in tried if fires} == set(NAMES)
    assert {name for name, fires in tried if not fires} == set(NAMES)


def test_a_rule_that_is_changed_fails_its_case(rules: Path) -> None:
    """The cases can tell."""
    rules.write_text(rules.read_text(encoding="utf-8").replace("> 400", "> 4000"), encoding="utf-8")
    cases = rules.parent / CASES.name
    document = yaml.safe_load(cases.read_text(encoding="utf-8"))
    document["tests"] = [each for each in document["tests"] if "PlimsollWatchStale" in str(each)]
    cases.write_text(yaml.safe_dump(document), encoding="utf-8")

    with pytest.raises(AssertionError, match="PlimsollWatchStale"):
        run("promtool", "test", "rules", str(cases))


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_an_alert_asks_for_metrics_that_exist_and_says_what_to_do(rule: dict[str, Any]) -> None:
    """Its page has what it means, where to look, with which command, and what to do."""
    page = ROOT / rule["annotations"]["runbook_url"]
    text = page.read_text(encoding="utf-8")

    assert unknown(rule["expr"]) == set()
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert page.name == f"{rule['alert']}.md"
    assert text.startswith(f"# {rule['alert']}\n")
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == ["What it means", "Where to look", "What to do"]
    assert "```console\n$ kubectl " in text


def test_there_is_no_page_without_its_alert() -> None:
    """Pages of alerts that are gone mislead."""
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == set(NAMES)
