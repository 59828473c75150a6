"""deploy/: valid for an API server, restricted, and in step with the command line."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.manifests import DEPLOY, OVERLAYS, documents, grants
from e2e.speaking import speaking
from plimsoll.adapters.resources import WATCHED
from plimsoll.app.settings import Settings
from plimsoll.cli import run

if TYPE_CHECKING:
    from pathlib import Path

#: Where objects of each kind are created.
COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
}


def pod_template(overlay: str) -> dict[str, Any]:
    """The operator's pod template."""
    found = next(each for each in documents(overlay) if each["kind"] == "Deployment")
    template: dict[str, Any] = found["spec"]["template"]
    return template


@pytest.mark.e2e
@pytest.mark.parametrize("overlay", OVERLAYS)
async def test_an_api_server_takes_every_object(overlay: str, kubeconfig: Path) -> None:
    """Strictly: a field that does not exist is an error."""
    async with speaking(kubeconfig) as speaker:
        made = []
        try:
            for document in documents(overlay):
                path = COLLECTIONS[document["kind"]].format(**document["metadata"])
                made.append(f"{path}/{document['metadata']['name']}")
                answer = await speaker.request("POST", path, document, fieldValidation="Strict")
                assert answer.status == 201, answer.body
        finally:
            for path in reversed(made):
                await speaker.request("DELETE", path)


def test_every_file_belongs_to_an_overlay() -> None:
    """Nothing lies about that nobody applies."""
    files = {path for path in DEPLOY.rglob("*.yaml") if path.name != "kustomization.yaml"}
    named = set()
    for path in DEPLOY.rglob("kustomization.yaml"):
        for resource in yaml.safe_load(path.read_text(encoding="utf-8"))["resources"]:
            named.add((path.parent / resource).resolve())

    assert files <= named
    assert all(path.exists() for path in named)


def test_the_pod_meets_the_restricted_standard() -> None:
    """Pod Security 'restricted', with a numeric user and a read-only root."""
    spec = pod_template("enforce")["spec"]
    (container,) = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_probes_ask_the_ports_that_the_operator_opens() -> None:
    """Ports are the command's defaults, and the options exist."""
    (container,) = pod_template("enforce")["spec"]["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    options = {"--" + name.replace("_", "-") for name in inspect.signature(run).parameters}

    assert ports == {"health": Settings().health_port, "metrics": Settings().metrics_port}
    assert container["args"][0] == "run"
    assert {each.partition("=")[0] for each in container["args"][1:]} <= options
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}


def test_what_is_watched_may_be_listed_and_watched() -> None:
    """Each reflector's collection, in both overlays."""
    for resource in WATCHED:
        parts = resource.path.strip("/").split("/")
        group = parts[1] if parts[0] == "apis" else ""
        for verb in ("list", "watch"):
            assert (verb, group, resource.name) in grants("dry-run")


def test_a_dry_run_can_change_nothing_but_what_it_says() -> None:
    """Records, statuses of our kinds, events, its lease: the API server refuses all else."""
    writes = {grant for grant in grants("dry-run") if grant[0] not in {"get", "list", "watch"}}

    assert writes == {
        ("create", "plimsoll.dev", "evictions"),
        ("delete", "plimsoll.dev", "evictions"),
        ("patch", "plimsoll.dev", "evictions/status"),
        ("patch", "plimsoll.dev", "schedulingpolicies/status"),
        ("create", "events.k8s.io", "events"),
        ("patch", "events.k8s.io", "events"),
        ("create", "coordination.k8s.io", "leases"),
        ("update", "coordination.k8s.io", "leases"),
    }


def test_the_lease_may_be_written_by_its_name_and_in_its_namespace_only() -> None:
    """Of other leases, such as kube-scheduler's, the operator can neither read nor change any."""
    roles = [each for each in documents("dry-run") if each["kind"] == "Role"]
    rules = [rule for role in roles for rule in role["rules"]]

    assert [role["metadata"]["namespace"] for role in roles] == ["plimsoll"]
    assert {verb for rule in rules if "resourceNames" not in rule for verb in rule["verbs"]} == {"create"}
    assert {name for rule in rules for name in rule.get("resourceNames", ())} == {
        Settings().leader_elect_resource_name
    }
