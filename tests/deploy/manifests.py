"""What a kustomization of deploy/ holds, read without kustomize: the files named, in their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
OVERLAYS = ("dry-run", "enforce")


def documents(overlay: str) -> list[dict[str, Any]]:
    """The objects of an overlay and of what it is built on."""
    folder = DEPLOY / overlay
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = []
    for resource in kustomization["resources"]:
        path = (folder / resource).resolve()
        if path.is_dir():
            found += documents(str(path.relative_to(DEPLOY)))
        else:
            found += yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return found


def grants(overlay: str) -> set[tuple[str, str, str]]:
    """What the operator may do: (verb, group, resource) of every rule of every role, wherever it holds."""
    return {
        (verb, group, resource)
        for document in documents(overlay)
        if document["kind"] in {"ClusterRole", "Role"}
        for rule in document["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
