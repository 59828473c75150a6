"""deploy/dashboards uses existing metrics and is the same in every way to install it."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.manifests import DEPLOY, Obj, of_kind, parsed, run, templated
from deploy.tools import ROOT
from pages.metrics import families

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted((DEPLOY / "dashboards").glob("*.json"))
MONITORING = ("serviceMonitor.enabled=true", "prometheusRule.enabled=true", "dashboards.enabled=true")

#: Labels that Prometheus or its owner adds when it scrapes, and a histogram's own.
SCRAPED = {"cluster", "job", "instance", "namespace", "le"}


#: Labels of the metrics of kube-state-metrics that alerts read.
KUBE_STATE = {"kube_pod_scheduler": {"pod", "name"}, "kube_pod_status_phase": {"pod", "phase"}}


def panels(dashboard: Obj) -> list[Obj]:
    """The panels that show something."""
    return [each for each in dashboard["panels"] if each["type"] != "row"]


def expressions() -> list[tuple[str, str]]:
    """Every query of every dashboard, with where it is."""
    return [
        (f"{path.stem}: {panel['title']}: {target['legendFormat']}", target["expr"])
        for path in FILES
        for panel in panels(json.loads(path.read_text(encoding="utf-8")))
        for target in panel["targets"]
    ]


def unknown(expression: str) -> set[str]:
    """Names of metrics and labels in an expression that no metric of ours has."""
    known: dict[str, set[str]] = {}
    for family, labels in families():
        endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
        known.update({family.name + ending: {*labels, *SCRAPED} for ending in endings})
    found = set(re.findall(r"\bplimsoll_\w+", expression))
    wrong = {name for name in found if name not in known}
    labels = {label for name in found - wrong for label in known[name]} | SCRAPED  # type: ignore[assignment] # a fake differs on purpose
    for name in KUBE_STATE.keys() & set(re.findall(r"\bkube_\w+", expression)):
        labels = labels | KUBE_STATE[name]  # type: ignore[operator] # as above
    for chosen in re.findall(r"\{([^}]*)\}", expression):
        wrong |= set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", chosen)) - labels  # type: ignore[operator] # known to exist in this test
    for grouped in re.findall(r"\b(?:by|on|without|ignoring) \(([^)]*)\)", expression):
        wrong |= {each.strip() for each in grouped.split(",") if each} - labels  # type: ignore[operator] # known to exist in this test
    return wrong


def test_the_files_are_what_the_description_says() -> None:
    """Else: make dashboards."""
    scope: dict[str, Any] = {"__file__": str(DEPLOY / "dashboards/build.py"), "__name__": "build"}
    exec(compile((DEPLOY / "dashboards/build.py").read_text(encoding="utf-8"), "build.py", "exec"), scope)

    assert {path.name: path.read_text(encoding="utf-8") for path in FILES} == scope["dashboards"]()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_dashboard_can_be_read(path: Path) -> None:
    """No panels overlap, identifiers are unique, variables exist."""
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    names = {each["name"] for each in dashboard["templating"]["list"]}
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    used = set(re.findall(r"\$(\w+)", json.dumps([panel["targets"] for panel in panels(dashboard)])))

    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert used - {"__rate_interval"} == names - {"datasource"}
    assert len(panels(dashboard)) >= 5


def test_a_dashboard_shows_clusters_apart() -> None:
    """A server of metrics may hold many; one that has a single cluster needs no label for it."""
    for where, query in expressions():
        selectors = re.findall(r"\w\{([^}]*)\}", query)
        assert selectors, where
        assert all(each.startswith('cluster=~"$cluster",') for each in selectors), where
        assert mixing(query) == [], where
    for path in FILES:
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        variables = {each["name"]: each for each in dashboard["templating"]["list"]}
        assert variables["cluster"]["allValue"] == ".*"
        (moves,) = dashboard["annotations"]["list"]
        assert unknown(moves["expr"]) == set()
        for panel in panels(dashboard):
            assert all("{{cluster}}" in each["legendFormat"] for each in panel["targets"])


def mixing(expression: str) -> list[str]:
    """Parts of a query in which the label ``cluster`` is lost."""
    lists = re.findall(r"\b(by|on|without|ignoring)\s*\(([^)]*)\)", expression)
    found = [
        f"{word} ({labels})"
        for word, labels in lists
        if (word in ("by", "on")) is not ("cluster" in re.split(r"\W+", labels))
        and (word in ("by", "on") or "cluster" in re.split(r"\W+", labels))
    ]
    return found + re.findall(r"\b(?:sum|max|min|avg|count|group|stddev)\s*\(", expression)


def test_every_query_asks_for_metrics_and_labels_that_exist() -> None:
    """A misspelt name would show an empty panel without an error."""
    assert {where: unknown(query) for where, query in expressions() if unknown(query)} == {}

    assert unknown('sum by (colour) (plimsoll_watch_lists_total{resuorce="pods"})') == {"colour", "resuorce"}
    assert unknown("rate(plimsoll_watch_lists[5m])") == {"plimsoll_watch_lists"}


def component(folder: Path) -> list[Obj]:
    """What the component for monitoring adds."""
    (folder / "kustomization.yaml").write_text(
        yaml.safe_dump({"components": [os.path.relpath(DEPLOY / "components/monitoring", folder)]})
    )
    return parsed(run("kubectl", "kustomize", str(folder)))


def test_the_chart_brings_what_the_component_does(tmp_path: Path) -> None:
    """The same dashboards and alerts; what is scraped is the Service that each has."""
    ours, charts = component(tmp_path), parsed(templated("", "--set", ",".join(MONITORING)))

    def contents(objects: list[Obj], kind: str, field: str) -> Any:
        (one,) = of_kind(objects, kind)
        return one[field]

    assert contents(ours, "ConfigMap", "data") == contents(charts, "ConfigMap", "data")
    assert set(contents(ours, "ConfigMap", "data")) == {path.name for path in FILES}
    assert contents(ours, "ConfigMap", "metadata")["labels"]["grafana_dashboard"] == "1"
    assert contents(ours, "PrometheusRule", "spec") == contents(charts, "PrometheusRule", "spec")
    (monitor,), services = of_kind(charts, "ServiceMonitor"), of_kind(charts, "Service")
    (service,) = services
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (access,) = parsed((DEPLOY / "components/metrics-access/service.yaml").read_text(encoding="utf-8"))
    (own,) = of_kind(ours, "ServiceMonitor")
    assert own["spec"]["selector"]["matchLabels"].items() <= access["metadata"]["labels"].items()
    for one, served in ((monitor, service), (own, access)):
        ports = {port["name"] for port in served["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in one["spec"]["endpoints"]} <= ports


def test_nothing_of_it_comes_uncalled() -> None:
    """A cluster without the Prometheus Operator does not know these kinds."""
    kinds = {each["kind"] for each in parsed(templated(""))}

    assert not kinds & {"ServiceMonitor", "PrometheusRule", "ConfigMap"}


def test_runbooks_may_be_read_elsewhere() -> None:
    """The chart's value goes before each page's name."""
    chosen = (
        "--set",
        "prometheusRule.enabled=true,prometheusRule.runbookUrl=https://wiki.example.com/runbooks/",
    )
    (rule,) = of_kind(parsed(templated("", *chosen)), "PrometheusRule")
    urls = [each["annotations"]["runbook_url"] for each in rule["spec"]["groups"][0]["rules"]]

    assert all(re.fullmatch(r"https://wiki\.example\.com/runbooks/Plimsoll\w+\.md", url) for url in urls), (
        urls
    )
    assert all((ROOT / "docs/runbooks" / url.rpartition("/")[2]).is_file() for url in urls)
