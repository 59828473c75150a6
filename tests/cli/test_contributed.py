"""Views and plugins of k9s and the manifest of krew: their fields, and that they name what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.commands import paths
from plimsoll.api.v1alpha1 import KINDS
from plimsoll.cli.completion import CommandLine
from plimsoll.commands.program import app
from plimsoll.version import __version__

CONTRIBUTED = Path(__file__).parents[2] / "contrib"

#: What k9s puts into arguments (its documentation of plugins), and the kinds of scopes.
VARIABLES = {"$NAME", "$NAMESPACE", "$CONTEXT"}
SCOPES = {"pods", "nodes", *(kind.definition.plural for kind in KINDS)}

#: Fields of krew's index, v1alpha2.
SPEC = {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}
PLATFORM = {"selector", "uri", "sha256", "bin", "files"}


def content(name: str) -> Any:
    return yaml.safe_load((CONTRIBUTED / name).read_text(encoding="utf-8"))


def test_views_name_columns_that_there_are() -> None:
    """Those of our definitions, and those that k9s has itself."""
    views = content("k9s/views.yaml")["views"]

    assert set(views) == {f"plimsoll.dev/v1alpha1/{kind.definition.plural}" for kind in KINDS}
    for kind in KINDS:
        view = views[f"plimsoll.dev/v1alpha1/{kind.definition.plural}"]
        known = {column.name.upper() for column in kind.definition.columns} | {"NAME", "NAMESPACE", "AGE"}
        assert set(view) == {"columns", "sortColumn"}
        assert set(view["columns"]) <= known
        assert view["sortColumn"].partition(":")[0] in view["columns"]


@pytest.mark.parametrize("name", content("k9s/plugins.yaml")["plugins"])
def test_plugins_call_commands_that_there_are(name: str) -> None:
    """With flags that these take; what writes is confirmed, and keys of one view differ."""
    plugins = content("k9s/plugins.yaml")["plugins"]
    plugin = plugins[name]
    required = {"shortCut", "description", "scopes", "command", "background", "args"}
    assert required <= set(plugin) <= required | {"confirm"}
    assert set(plugin["scopes"]) <= SCOPES
    for other, each in plugins.items():
        if other != name and set(each["scopes"]) & set(plugin["scopes"]):
            assert each["shortCut"] != plugin["shortCut"]

    words = _words(plugin)
    line = CommandLine(app)
    for word in words:
        line.read(word)
    assert line.path in {path for path, verb in paths() if verb is not None}
    flags = {spelled for param in line.command.params for spelled in param.opts}
    assert {word for word in words if word.startswith("-")} <= flags
    assert {word for word in plugin["args"] if word.startswith("$")} <= VARIABLES
    assert plugin.get("confirm", False) == (line.path[0] in {"approve", "reject", "pause", "resume"})


def _words(plugin: dict[str, Any]) -> list[str]:
    """What comes after ``kubectl plimsoll``."""
    if plugin["command"] == "kubectl":
        assert plugin["args"][0] == "plimsoll"
        return [str(word) for word in plugin["args"][1:]]
    assert (plugin["command"], plugin["args"][0]) == ("sh", "-c")
    program, *words = shlex.split(plugin["args"][1].partition(" 2>&1 |")[0])
    assert (program, words[0]) == ("kubectl", "plimsoll")
    return words[1:]


def test_the_manifest_of_krew_has_the_fields_that_its_index_asks_for() -> None:
    """Of this version; the addresses are those of a release that is to come."""
    manifest = content("krew/plimsoll.yaml")
    spec = manifest["spec"]

    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert (manifest["kind"], manifest["metadata"]) == ("Plugin", {"name": "plimsoll"})
    assert set(spec) == SPEC
    assert spec["version"] == f"v{__version__}"
    assert len(spec["shortDescription"]) <= 50
    assert not spec["shortDescription"].endswith(".")
    assert max(map(len, (spec["description"] + spec["caveats"]).splitlines())) <= 80
    for platform in spec["platforms"]:
        system = platform["selector"]["matchLabels"]
        assert set(platform) <= PLATFORM
        assert set(system) == {"os", "arch"}
        assert platform["uri"].endswith(
            f"/{spec['version']}/kubectl-plimsoll-{system['os']}-{system['arch']}.tar.gz"
        )
        assert re.fullmatch("[0-9a-f]{64}", platform["sha256"])
        assert platform["bin"] == "kubectl-plimsoll"
