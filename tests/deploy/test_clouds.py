"""deploy/clouds: values for managed clouds, as their pages say."""

from __future__ import annotations

import pytest

from deploy.manifests import CHART, DEPLOY, Obj, of_kind, parsed, run, templated
from plimsoll.check.clouds import CLOUDS

CLOUD_VALUES = sorted(path.name for path in (DEPLOY / "clouds").glob("*-values.yaml"))


def of_cloud(values: str) -> list[Obj]:
    """The objects of the chart with the values of a cloud."""
    return parsed(templated(f"../../clouds/{values}"))


def test_each_cloud_that_is_known_has_values_and_a_page() -> None:
    assert sorted(f"{each.name.lower()}-values.yaml" for each in CLOUDS) == CLOUD_VALUES
    for each in CLOUDS:
        page = (DEPLOY.parent / each.page).read_text(encoding="utf-8")
        assert f"deploy/clouds/{each.name.lower()}-values.yaml" in page
        assert "## What was not tried" in page


@pytest.mark.parametrize("values", CLOUD_VALUES)
def test_helm_takes_them(values: str) -> None:
    run("helm", "lint", "--strict", "--quiet", str(CHART), "--values", str(DEPLOY / "clouds" / values))


@pytest.mark.parametrize("values", CLOUD_VALUES)
def test_two_replicas_stand_on_two_nodes_and_run_restricted(values: str) -> None:
    """OpenShift's SCC chooses the user; elsewhere the chart does."""
    (deployment,) = of_kind(of_cloud(values), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    context = pod["securityContext"]

    assert deployment["spec"]["replicas"] == 2
    assert "requiredDuringSchedulingIgnoredDuringExecution" in pod["affinity"]["podAntiAffinity"]
    assert context["runAsNonRoot"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert ("runAsUser" in context) is (values != "openshift-values.yaml")
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    ("values", "port", "dns"),
    [
        ("eks-values.yaml", 443, {53}),
        ("gke-values.yaml", 443, {53}),
        ("aks-values.yaml", 443, {53}),
        ("openshift-values.yaml", 6443, {53, 5353}),
    ],
)
def test_the_operator_reaches_the_api_server_and_dns(values: str, port: int, dns: set[int]) -> None:
    (policy,) = of_kind(of_cloud(values), "NetworkPolicy")
    anywhere, *named = policy["spec"]["egress"]

    assert [each["port"] for each in anywhere["ports"]] == [port]
    assert "to" not in anywhere
    assert {each["port"] for rule in named for each in rule["ports"]} == dns


def test_gke_has_a_quota_for_the_class_of_the_operator() -> None:
    """With room for both replicas while they are replaced."""
    (quota,) = parsed((DEPLOY / "clouds/gke_critical_pods.yaml").read_text(encoding="utf-8"))
    (deployment,) = of_kind(of_cloud("gke-values.yaml"), "Deployment")
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]

    assert scope["values"] == [deployment["spec"]["template"]["spec"]["priorityClassName"]]
    assert int(quota["spec"]["hard"]["pods"]) == 2 * deployment["spec"]["replicas"]
