"""Renders the overlays of deploy/ with kubectl and the charts with helm."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from built_once import Parts, built_once, sources, tools
from deploy.tools import ROOT, tool

Obj = dict[str, Any]

DEPLOY = ROOT / "deploy"
CHART, CRDS_CHART = DEPLOY / "chart", DEPLOY / "crds-chart"
OVERLAYS = ("dry-run", "enforce", "high-availability", "surge")
#: The release, and the namespace, of everything that is rendered.
NAME = "plimsoll"
#: Sets of values: the defaults, and each that lies next to the chart.
VALUES = ("", *sorted(path.name for path in (CHART / "ci").glob("*-values.yaml")))


def run(program: str, *args: str, given: str = "", **environment: str) -> str:
    """What a program prints.

    Raises:
        AssertionError: It fails.
    """
    # helm keeps nothing of its own anywhere.
    kept = {name: os.environ[name] for name in ("GOGC", "GOMEMLIMIT") if name in os.environ}
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **kept, **environment}
    done = subprocess.run(
        [tool(program), *args], input=given, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{program} {' '.join(args)}: {done.stderr[-4000:]}"
    return done.stdout


@cache
def rendered(overlay: str) -> str:
    """The text of an overlay."""
    return run("kubectl", "kustomize", str(DEPLOY / overlay))


@cache
def templated(values: str, *options: str, chart: Path = CHART) -> str:
    """The text of a chart with a set of values."""
    chosen = ["--values", str(CHART / "ci" / values)] if values else []
    return run("helm", "template", NAME, str(chart), "--namespace", NAME, *chosen, *options)


@cache
def _in_json(document: str) -> str:
    """A document in JSON: most texts have the same definitions, and YAML takes ten times as long to read."""
    return json.dumps(yaml.load(document, Loader=yaml.CSafeLoader))


def parsed(text: str) -> list[Obj]:
    """The objects of a text, the caller's own."""
    return [each for one in re.split(r"(?m)^---$", text) if (each := json.loads(_in_json(one)))]


@cache
def _parts() -> Parts:
    """All that an overlay is made of."""
    return sources(ROOT, ["deploy", "crds", "tests/deploy/manifests.py"]) | tools(Path(tool("kubectl")))


def documents(overlay: str) -> list[Obj]:
    """The objects of an overlay."""
    return documents_with(overlay, "")


@cache
def of_chart(values: str) -> list[Obj]:
    """The objects of the chart with a set of values."""
    return parsed(templated(values))


def of_kind(objects: list[Obj], *kinds: str) -> list[Obj]:
    """Those of some kinds."""
    return [each for each in objects if each["kind"] in kinds]


def pod_template(objects: list[Obj]) -> Obj:
    """The operator's pod template."""
    (deployment,) = of_kind(objects, "Deployment")
    template: Obj = deployment["spec"]["template"]
    return template


def grants(overlay: str) -> set[tuple[str, str, str]]:
    """What the operator may do: (verb, group, resource) of every rule of its roles, wherever they hold."""
    return operators_grants(documents(overlay))


@cache
def documents_with(overlay: str, component: str) -> list[Obj]:
    """The objects of an overlay with a component added to it, if any; rendered once for all workers."""

    def build(folder: Path) -> None:
        folder.mkdir()
        text = _rendered_with(overlay, component) if component else rendered(overlay)
        (folder / "objects.json").write_text(json.dumps(parsed(text)), encoding="utf-8")

    kept = built_once(f"objects_{overlay}_{component}", _parts(), build)
    found: list[Obj] = json.loads((kept / "objects.json").read_text(encoding="utf-8"))
    return found


def _rendered_with(overlay: str, component: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        # kubectl takes no absolute paths.
        deploy = os.path.relpath(DEPLOY, Path(folder).resolve())
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [f"{deploy}/{overlay}"],
            "components": [f"{deploy}/components/{component}"],
        }
        (Path(folder) / "kustomization.yaml").write_text(yaml.safe_dump(kustomization), encoding="utf-8")
        return run("kubectl", "kustomize", folder)


@cache
def grants_with(overlay: str, component: str) -> set[tuple[str, str, str]]:
    """Likewise, with a component added to the overlay."""
    return operators_grants(documents_with(overlay, component))


def operators_grants(objects: list[Obj]) -> set[tuple[str, str, str]]:
    """Likewise, of objects."""
    account = pod_template(objects)["spec"]["serviceAccountName"]
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for each in of_kind(objects, "RoleBinding", "ClusterRoleBinding")
        if any(subject["name"] == account for subject in each["subjects"])
    }
    return {
        (verb, group, resource)
        for role in of_kind(objects, "Role", "ClusterRole")
        if (role["kind"], role["metadata"]["name"]) in bound
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
