"""The plugin for Headlamp agrees with the code, and is built where its packages are installed."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plimsoll.answers.operator_memory import PodMemory
from plimsoll.api.v1alpha1.eviction import Eviction
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cli.callers.pod_proxy import PORT, TOKEN_S
from plimsoll.plugins import IN_TREE
from plimsoll.ports.audience import AUDIENCE, HEADER, READER
from plimsoll.version import __version__

PLUGIN = Path(__file__).parents[2] / "contrib" / "headlamp"
SOURCES = PLUGIN / "src"

#: Beginnings of reasons, as filter plugins word them.
REASONS = ("node(s) ", "Insufficient ", "Too many pods")

#: In-tree plugins by their names.
CLASSES = {each.__name__: each for each in IN_TREE}

needs_packages = pytest.mark.skipif(
    shutil.which("npm") is None or not (PLUGIN / "node_modules" / ".bin" / "vitest").exists(),
    reason="the plugin for Headlamp was not built, for its 1,300 packages are not installed: `make headlamp` "
    "installs them and builds it, as a workflow does",
)


def content(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text(encoding="utf-8"))


def text(name: str) -> str:
    return (SOURCES / name).read_text(encoding="utf-8")


def reasons_of(plugin: str) -> set[str]:
    """The beginnings of the reasons that a plugin's module has."""
    tree = ast.parse(inspect.getsource(sys.modules[CLASSES[plugin].__module__]))
    found = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {each for each in found if each.startswith(REASONS) and each != "node(s) "}


def test_reasons_and_plugins_are_those_of_the_code() -> None:
    """Each sentence of the page is one of its plugin, and each one of a filter plugin is there."""
    known = content("src/explanation/refusals.json")
    for each in known:
        assert any(reason.startswith(each["begins"]) for reason in reasons_of(each["plugin"])), each
    begins = {(each["plugin"], each["begins"]) for each in known}
    for plugin in sorted(set(CLASSES) - {"DefaultPreemption", "DynamicResources"}):
        for reason in reasons_of(plugin):
            assert any(plugin == one and reason.startswith(start) for one, start in begins), (plugin, reason)


def test_the_operator_is_asked_as_the_command_asks_it() -> None:
    """Audience, header, account and port are those of `plimsoll explain`."""
    asking = text("explanation/operatorMemory.ts")
    said = dict(re.findall(r"const ([A-Z_]+) = '?([^';]+)'?;", asking))

    expected = {"AUDIENCE": AUDIENCE, "HEADER": HEADER, "READER": READER}
    assert expected.items() <= said.items()
    assert (said["TOKEN_S"], said["PORT"]) == (str(TOKEN_S), str(PORT))


def test_phases_are_those_of_the_definition() -> None:
    named = re.findall(r"^  ([A-Z][a-z]+): \{ level", text("evictions/evictionFacts.ts"), re.MULTILINE)

    assert set(named) == {each.value for each in Phase}


def test_recorded_objects_are_valid() -> None:
    """tests/e2e/test_headlamp.py records them, and compares them with a cluster."""
    Eviction.model_validate(_ours(content("src/recorded/eviction.json")))
    SchedulingPolicy.model_validate(_ours(content("src/recorded/policy.json")))
    PodMemory.model_validate({**content("src/recorded/podMemory.json"), "room": None})


def _ours(document: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in document.items() if key in ("spec", "status")}


def test_packages_are_locked_by_hash_and_name_no_server() -> None:
    """A lock of another registry than the user's would bypass theirs."""
    package, lock = content("package.json"), content("package-lock.json")

    assert package["version"] == lock["version"] == __version__
    assert (PLUGIN / "package-lock.json").stat().st_size < 1 << 20
    for name, each in lock["packages"].items():
        assert "resolved" not in each, name
        assert not name or each.get("inBundle") or each["integrity"].startswith("sha"), name


@needs_packages
def test_it_is_built() -> None:
    """`make headlamp` runs its unit tests as well, which start a browser's document model for each file."""
    done = subprocess.run(["npm", "run", "build"], cwd=PLUGIN, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "plimsoll.dev" in (PLUGIN / "dist" / "main.js").read_text(encoding="utf-8")
