"""The deciding packages use declared capabilities of plugins, never names or attributes."""

import ast
from ast import Module
from pathlib import Path

import pytest

import distributions
from plimsoll import plugins, strategies
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from syntax_trees import nodes, syntax_tree

#: Packages that look for capabilities with isinstance(), when a profile or a policy is built.
NO_PROBING = ("engine", "planning", "scheduling", "rebalancing", "policies", "cluster")
#: Packages that name no plugin and no strategy.
NO_NAMES = ("engine", "planning", "scheduling/queue")
#: Attributes of libraries' objects that may be missing.
OF_LIBRARIES = {"next_run_time"}

NAMES = {each.name for each in (*plugins.IN_TREE, *strategies.IN_TREE, *strategies.EVICTORS)}  # type: ignore[attr-defined] # known to exist in this test


def modules(packages: tuple[str, ...]) -> list[pytest.ParameterSet]:
    """The modules of the packages, as far as these exist."""
    roots = tuple(f"plimsoll.{each.replace('/', '.')}" for each in packages)
    found = {distributions.dotted(path): path for path in distributions.modules()}
    return [pytest.param(path, id=name) for name, path in found.items() if name.startswith(roots)]


def probes(tree: Module) -> set[str]:
    """Attribute names that the module probes for."""
    return {
        call.args[1].value  # type: ignore[misc] # known in this test
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in {"getattr", "hasattr"}
        and isinstance(call.args[1], ast.Constant)
    }


@pytest.mark.parametrize("path", modules(NO_PROBING))
def test_no_module_probes_for_an_attribute(path: Path) -> None:
    """Capabilities are protocols of ``framework``; a constant name in getattr() is a hidden one."""
    assert probes(syntax_tree(path)) <= OF_LIBRARIES


@pytest.mark.parametrize("path", modules(NO_NAMES))
def test_no_module_names_a_plugin_or_strategy(path: Path) -> None:
    """What is special about a plugin is a capability that other plugins may have, too."""
    constants = {
        each.value
        for each in nodes(syntax_tree(path))
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }

    assert not {name for text in constants for name in NAMES if f'"{name}"' in text or text == name}


def test_both_kinds_are_found() -> None:
    """The checks see what they are to refuse."""
    assert probes(ast.parse('getattr(plugin, "signature", None) or hasattr(plugin, "normalize")')) == {
        "signature",
        "normalize",
    }
    assert {"NodeResourcesFit", "DefaultEvictor", "RemoveDuplicates"} <= NAMES


def test_the_default_profile_declares_its_capabilities() -> None:
    """The plugins that the engine, the planner and the queue used to know by their names."""
    profile = build_profile(
        ProfileConfig("default-scheduler"),
        Registry(plugins.IN_TREE),
        [Enabled(name) for name in plugins.DEFAULT_PLUGINS],
    )
    found = profile.capabilities

    assert found.counting == {"NodeResourcesFit", "PodTopologySpread"}
    assert {"NodeResourcesFit", "TaintToleration", "NodeAffinity"} <= found.linear
    assert set(found.easing) == {"InterPodAffinity", "NodePorts", "PodTopologySpread", "VolumeRestrictions"}
    assert {"ImageLocality", "NodeUnschedulable", "TaintToleration", "NodeAffinity"} <= set(found.signed)
    assert {"TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity"} <= set(
        found.normalizing
    )
