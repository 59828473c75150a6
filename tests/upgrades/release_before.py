"""Installs the release before: the newest tag before this commit, or a named commit."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]

#: Kinds that the story makes objects of.
KINDS = ("podgroups", "nodemaintenances", "rebalancingrules", "schedulingpolicies")


@dataclass(frozen=True, slots=True)
class Release:
    """An installation of some commit.

    Attributes:
        name: The commit, shortened.
        root: Its files.
    """

    name: str
    root: Path

    @property
    def command(self) -> Path:
        """``plimsoll`` of its own environment."""
        return self.root / ".venv/bin/plimsoll"

    @property
    def definitions(self) -> Path:
        """The folder of its custom resource definitions."""
        return self.root / "crds"


def defaults_of(definitions: Path) -> list[str]:
    """Where definitions have defaults: the API server adds these fields to each object that it reads."""
    found = []
    for file in sorted(definitions.glob("*.yaml")):
        definition = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)["spec"]
        for version in definition["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            found += _defaulted(schema, f"{definition['names']['kind']} {version['name']} ")
    return found


def _defaulted(schema: dict[str, Any], path: str) -> list[str]:
    found = [path] if "default" in schema else []
    for name, field in schema.get("properties", {}).items():
        found += _defaulted(field, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            found += _defaulted(schema[inner], f"{path}[]")
    return found


def git(*arguments: str) -> str:
    """What git says of this repository; "" where it refuses."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def before() -> str:
    """The newest tag of a version before this commit; without one, the last commit with other definitions."""
    if tag := git("describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^"):
        return tag
    return git("log", "-1", "--format=%h", "--first-parent", "--diff-filter=M", "--", "crds") + "^"


def installed(commit: str, folder: Path) -> Release:
    """Install a commit below a folder, with its own locked dependencies; one that is there is taken as it is.

    Raises:
        SystemExit: There is no such commit, it lacks a kind, or its ``make setup`` fails.
    """
    name = git("rev-parse", "--short=12", f"{commit}^{{commit}}")
    if not name:
        raise SystemExit(f"{commit} is no commit of this repository: FROM=<tag or commit>")
    defined = git("ls-tree", "--name-only", name, "crds/")
    if lacking := [each for each in KINDS if f"_{each}.yaml" not in defined]:
        raise SystemExit(f"{commit} does not define {', '.join(lacking)}: FROM=<a commit that does>")
    root = folder / name
    if not (root / ".venv/.installed").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        archive = subprocess.Popen(["git", "-C", ROOT, "archive", name], stdout=subprocess.PIPE)
        with tarfile.open(fileobj=archive.stdout, mode="r|") as files:
            files.extractall(root, filter="data")
        if subprocess.run(["make", "-C", root, "setup"], check=False).returncode:
            raise SystemExit(f"make setup of {name} fails in {root}")
    return Release(name, root)
