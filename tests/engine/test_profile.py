"""Profiles: merging with the defaults as upstream, and refusals that name the field."""

from typing import Any

import pytest

from engine.toys import ALL
from plimsoll.engine.profile import Enabled, PluginSet, Profile, ProfileConfig, build_profile
from plimsoll.framework import ConfigurationError, Registry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE

DEFAULTS = [Enabled("Fifo"), Enabled("Room"), Enabled("Binds")]


def built(**plugins: Any) -> Profile:
    config = ProfileConfig("s", dict(plugins.items()))
    return build_profile(config, Registry(ALL), DEFAULTS)


def names(plugins: tuple[Any, ...]) -> list[str]:
    return [plugin.name for plugin in plugins]


def test_the_defaults_serve_an_empty_profile() -> None:
    """A policy that names only a scheduler gets every default plugin, weight 1 unless said."""
    profile = built()

    assert names(profile.filter) == ["Room"]
    assert profile.weights == {"Room": 1}


@pytest.mark.parametrize(
    ("plugins", "filters", "weights"),
    [
        pytest.param(
            {"multiPoint": PluginSet((Enabled("Pool"),))}, ["Room", "Pool"], {"Room": 1}, id="appended"
        ),
        pytest.param(
            {"multiPoint": PluginSet((Enabled("Pool"), Enabled("Room", 7)))},
            ["Room", "Pool"],
            {"Room": 7},
            id="replaced-in-place",
        ),
        pytest.param(
            {"filter": PluginSet((Enabled("Pool"), Enabled("Room")))},
            ["Room", "Pool"],
            {"Room": 1},
            id="known-first",
        ),
        pytest.param(
            {"filter": PluginSet(disabled=frozenset({"Room"}))}, [], {"Room": 1}, id="off-at-one-point"
        ),
        pytest.param(
            {
                "multiPoint": PluginSet((Enabled("Pool"),)),
                "filter": PluginSet((Enabled("Room"),), frozenset({"Room"})),
            },
            ["Pool", "Room"],
            {"Room": 1},
            id="off-and-on-again-comes-last",
        ),
        pytest.param(
            {"filter": PluginSet((Enabled("Pool"), Enabled("Room")), frozenset({"*"}))},
            ["Pool", "Room"],
            {"Room": 1},
            id="only-these-in-this-order",
        ),
        pytest.param({"multiPoint": PluginSet(disabled=frozenset({"Room"}))}, [], {}, id="off-everywhere"),
        pytest.param(
            {"score": PluginSet((Enabled("Room", 5),), frozenset({"*"}))},
            ["Room"],
            {"Room": 5},
            id="weight-at-the-point",
        ),
    ],
)
def test_sets_merge_as_upstream(plugins: dict[str, Any], filters: list[str], weights: dict[str, int]) -> None:
    """Order decides which refusal a user reads, so it is kube-scheduler's."""
    profile = built(**plugins)

    assert names(profile.filter) == filters
    assert profile.weights == weights


@pytest.mark.parametrize(
    ("plugins", "args", "path", "told"),
    [
        pytest.param(
            {"score": PluginSet((Enabled("Nope"),))},
            {},
            "spec.scheduling.plugins.score.enabled[0].name",
            "no plugin",
            id="unknown",
        ),
        pytest.param(
            {"scor": PluginSet()},
            {},
            "spec.scheduling.plugins.scor",
            "no such extension point",
            id="unknown-point",
        ),
        pytest.param(
            {"score": PluginSet((Enabled("Pool"),))},
            {},
            "spec.scheduling.plugins.score.enabled[0].name",
            'plugin "Pool" has no score; it has filter',
            id="not-at-this-point",
        ),
        pytest.param(
            {"filter": PluginSet((Enabled("Pool"), Enabled("Pool")))},
            {},
            "spec.scheduling.plugins.filter.enabled[1].name",
            "twice",
            id="twice",
        ),
        pytest.param(
            {"bind": PluginSet(disabled=frozenset({"*"}))},
            {},
            "spec.scheduling.plugins.bind",
            "DefaultBinder",
            id="no-bind",
        ),
        pytest.param(
            {"queueSort": PluginSet(disabled=frozenset({"Fifo"}))},
            {},
            "spec.scheduling.plugins.queueSort",
            "exactly one",
            id="no-sort",
        ),
        pytest.param(
            {"multiPoint": PluginSet((Enabled("Pool"),))},
            {"Pool": {"pond": 1}},
            "spec.scheduling.pluginConfig[Pool].args.pond",
            "there is no such field",
            id="bad-args",
        ),
        pytest.param(
            {},
            {"Pool": {"pond": 1}},
            "spec.scheduling.pluginConfig[Pool].args.pond",
            "there is no such field",
            id="bad-args-of-a-plugin-that-takes-no-part",
        ),
        pytest.param(
            {}, {"Nope": {}}, "spec.scheduling.pluginConfig[Nope]", "no plugin", id="args-of-nobody"
        ),
        pytest.param(
            {"score": PluginSet((Enabled("Room", 2**62),))},
            {},
            "spec.scheduling.plugins.score",
            "overflow",
            id="overflow",
        ),
    ],
)
def test_refusals_name_the_field(plugins: dict[str, Any], args: dict[str, Any], path: str, told: str) -> None:
    """What is wrong, where, and what is allowed; nothing half built."""
    with pytest.raises(ConfigurationError) as caught:
        build_profile(ProfileConfig("s", plugins, args), Registry(ALL), DEFAULTS)

    assert caught.value.path == path
    assert told in caught.value.problem


def test_a_name_is_taken_once() -> None:
    """Two classes of one name would hide one another."""
    registry = Registry(ALL)

    with pytest.raises(ConfigurationError, match="taken"):
        registry.add(ALL[0])


def test_a_class_without_extension_point_is_refused() -> None:
    """A typo in a method name is found when the plugin is entered, not when it is called."""

    class Useless:
        name = "Useless"

        def filtre(self) -> None:
            """A typo."""

    with pytest.raises(ConfigurationError, match="implements no extension point"):
        Registry([Useless])  # type: ignore[list-item] # a fake has only what is used


@pytest.mark.parametrize("when", ["Admit", "Refuse"])
def test_a_filter_that_gives_way_is_asked_after_all_others(when: str) -> None:
    """Wherever the policy lists it; whether it does depends on its arguments."""
    listed = ("NodeLoad", "NodeName", "NodeUnschedulable")
    chosen = PluginSet(tuple(map(Enabled, listed)), frozenset("*"))
    config = ProfileConfig("s", {"filter": chosen}, {"NodeLoad": {"whenAllOver": when}})
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]

    made = build_profile(config, Registry(IN_TREE), defaults)

    expected = [*listed[1:], listed[0]] if when == "Admit" else [*listed]
    assert [each.name for each in made.filter] == expected
