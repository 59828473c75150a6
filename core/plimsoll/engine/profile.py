"""A profile: the plugins that serve one scheduler name, at each extension point, in order.

Source: kube-scheduler v1.36, ``apis/config/v1/default_plugins.go`` (merging) and
``framework/runtime/framework.go`` (expansion of multiPoint).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, cast

import msgspec

from plimsoll.engine.extender import Extender
from plimsoll.engine.plugin_reach import (
    Capabilities,
    Stages,
    capabilities_of,
    gives_way,
    names_no_node,
    stages_of,
)
from plimsoll.framework import (
    MAX_SCORE,
    BindPlugin,
    ConfigurationError,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    Registry,
    ReservePlugin,
    ScorePlugin,
)
from plimsoll.framework.capabilities import declares_of
from plimsoll.framework.registry import EXTENSION_POINTS, implements
from plimsoll.toolkit.scheduling.topology_levels import NO_RULES, GroupRules

MULTI_POINT = "multiPoint"
LARGEST_TOTAL = 2**63 - 1


class Enabled(msgspec.Struct, frozen=True):
    """One entry of an ``enabled`` list; weight 0 means unset and becomes 1."""

    name: str
    weight: int = 0


class PluginSet(msgspec.Struct, frozen=True):
    """A profile's configuration of one extension point; ``"*"`` in ``disabled`` drops all defaults."""

    enabled: tuple[Enabled, ...] = ()
    disabled: frozenset[str] = frozenset()


class ProfileConfig(msgspec.Struct, frozen=True):
    """A profile as written, in plain values.

    Attributes:
        path: Its field path in the policy, for error messages.
        arg_paths: Field paths of the plugins' arguments; ``pluginConfig[name].args`` by default.
        policy: Name of its SchedulingPolicy, "" without one.
        via_eviction: Whether victims of preemption leave through the Eviction API.
        groups: What the policy says about groups.
    """

    scheduler_name: str
    plugins: Mapping[str, PluginSet] = msgspec.field(default_factory=dict)
    args: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    path: str = "spec.scheduling"
    arg_paths: Mapping[str, str] = msgspec.field(default_factory=dict)
    policy: str = ""
    via_eviction: bool = False
    groups: GroupRules = NO_RULES

    def args_path(self, name: str) -> str:
        """The field path of a plugin's arguments."""
        return self.arg_paths.get(name, f"{self.path}.pluginConfig[{name}].args")


@dataclass(frozen=True)
class Profile:
    """Plugin instances by extension point, in calling order."""

    scheduler_name: str
    pre_enqueue: tuple[PreEnqueuePlugin, ...]
    queue_sort: QueueSortPlugin
    pre_filter: tuple[PreFilterPlugin, ...]
    filter: tuple[FilterPlugin, ...]
    post_filter: tuple[PostFilterPlugin, ...]
    pre_score: tuple[PreScorePlugin, ...]
    score: tuple[ScorePlugin, ...]
    reserve: tuple[ReservePlugin, ...]
    permit: tuple[PermitPlugin, ...]
    pre_bind: tuple[PreBindPlugin, ...]
    bind: tuple[BindPlugin, ...]
    post_bind: tuple[PostBindPlugin, ...]
    weights: Mapping[str, int]
    policy: str = ""
    via_eviction: bool = False
    extenders: tuple[Extender, ...] = ()
    groups: GroupRules = NO_RULES

    @cached_property
    def stages(self) -> Stages:
        """The plugins of the stages that caches run, by what they read."""
        return stages_of(self.pre_filter, self.filter, self.pre_score, self.score, self.weights)

    @cached_property
    def capabilities(self) -> Capabilities:
        """What the plugins declare beyond their extension points."""
        return capabilities_of(self.plugins, self.filter, self.score, self.pre_bind, self.bind)

    @cached_property
    def without_preemption(self) -> "Profile":
        """The same profile without PostFilter plugins, created once; forks use it many times."""
        return replace(self, post_filter=())

    def confined(self, domain: FilterPlugin) -> "Profile":
        """The same profile with a further filter, which rejects first."""
        return replace(self, filter=(domain, *self.filter))

    @cached_property
    def nominates(self) -> bool:
        """Whether a plugin of the profile may nominate a pod that fits nowhere."""
        return not all(map(names_no_node, self.post_filter))

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Every plugin that takes part at some point, once."""
        others = ("scheduler_name", "weights", "policy", "via_eviction", "extenders", "groups")
        points = [getattr(self, each.name) for each in fields(self) if each.name not in others]
        found = {
            plugin.name: plugin
            for point in points
            for plugin in (point if isinstance(point, tuple) else (point,))
        }
        return tuple(found.values())

    @cached_property
    def scores_load(self) -> bool:
        """Whether the measured load of nodes affects the scores."""
        return any(declares_of(each).reads_load for each in self.score)

    @property
    def plugin_names(self) -> frozenset[str]:
        """The names of these plugins."""
        return frozenset(plugin.name for plugin in self.plugins)


def build_profile(config: ProfileConfig, registry: Registry, defaults: Sequence[Enabled]) -> Profile:
    """Create the plugin instances of a profile.

    Raises:
        ConfigurationError: Unknown plugin, bad arguments, a plugin twice at a point or without that point,
            not exactly one queue sort, no bind plugin, or an overflow of the weights; names the field.
    """
    for point, chosen in config.plugins.items():
        _check_names(point, chosen, registry, f"{config.path}.plugins.{point}")
    multi = _merged(defaults, config.plugins.get(MULTI_POINT, PluginSet()))
    for name in config.args:
        registry.find(name, config.args_path(name).removesuffix(".args"))
    # Arguments are validated even of plugins that take no part.
    names = {each.name for each in multi} | {
        each.name for chosen in config.plugins.values() for each in chosen.enabled
    }
    names |= set(config.args)
    instances = {
        name: registry.build(name, config.args.get(name), config.args_path(name)) for name in sorted(names)
    }
    by_point: dict[str, tuple[Plugin, ...]] = {}
    weights: dict[str, int] = {}
    for point in EXTENSION_POINTS:
        entries = _expanded(point, multi, config.plugins.get(point, PluginSet()), registry)
        by_point[point] = tuple(instances[each.name] for each in entries)
        if point == "filter":
            by_point[point] = tuple(sorted(by_point[point], key=gives_way))
        if point == "score":
            weights = {each.name: each.weight or 1 for each in entries}
    where = f"{config.path}.plugins"
    if len(by_point["queueSort"]) != 1:
        raise ConfigurationError(
            f"{where}.queueSort", f"exactly one plugin sorts the queue, not {len(by_point['queueSort'])}"
        )
    if not by_point["bind"]:
        raise ConfigurationError(f"{where}.bind", "at least one bind plugin is needed; enable DefaultBinder")
    if sum(weights.values()) * MAX_SCORE > LARGEST_TOTAL:
        raise ConfigurationError(f"{where}.score", "the weights are too large: their sum times 100 overflows")
    return Profile(
        scheduler_name=config.scheduler_name,
        pre_enqueue=cast("tuple[PreEnqueuePlugin, ...]", by_point["preEnqueue"]),
        queue_sort=cast("QueueSortPlugin", by_point["queueSort"][0]),
        pre_filter=cast("tuple[PreFilterPlugin, ...]", by_point["preFilter"]),
        filter=cast("tuple[FilterPlugin, ...]", by_point["filter"]),
        post_filter=cast("tuple[PostFilterPlugin, ...]", by_point["postFilter"]),
        pre_score=cast("tuple[PreScorePlugin, ...]", by_point["preScore"]),
        score=cast("tuple[ScorePlugin, ...]", by_point["score"]),
        reserve=cast("tuple[ReservePlugin, ...]", by_point["reserve"]),
        permit=cast("tuple[PermitPlugin, ...]", by_point["permit"]),
        pre_bind=cast("tuple[PreBindPlugin, ...]", by_point["preBind"]),
        bind=cast("tuple[BindPlugin, ...]", by_point["bind"]),
        post_bind=cast("tuple[PostBindPlugin, ...]", by_point["postBind"]),
        weights=weights,
        policy=config.policy,
        via_eviction=config.via_eviction,
        groups=config.groups,
    )


def _check_names(point: str, chosen: PluginSet, registry: Registry, path: str) -> None:
    if point != MULTI_POINT and point not in EXTENSION_POINTS:
        allowed = ", ".join((*EXTENSION_POINTS, MULTI_POINT))
        raise ConfigurationError(path, f"there is no such extension point; the points are {allowed}")
    seen: set[str] = set()
    for position, each in enumerate(chosen.enabled):
        where = f"{path}.enabled[{position}].name"
        registry.find(each.name, where)
        if each.name in seen:
            raise ConfigurationError(where, f'plugin "{each.name}" is enabled twice here; remove one entry')
        if point != MULTI_POINT and not implements(registry[each.name], point):
            has = ", ".join(at for at in EXTENSION_POINTS if implements(registry[each.name], at))
            raise ConfigurationError(where, f'plugin "{each.name}" has no {point}; it has {has}')
        seen.add(each.name)


def _merged(defaults: Sequence[Enabled], chosen: PluginSet) -> list[Enabled]:
    """The defaults without the disabled ones; a default that is enabled again is replaced in place."""
    custom = {each.name: each for each in chosen.enabled}
    kept = (
        []
        if "*" in chosen.disabled
        else [custom.pop(each.name, each) for each in defaults if each.name not in chosen.disabled]
    )
    return kept + list(custom.values())


def _expanded(point: str, multi: Iterable[Enabled], chosen: PluginSet, registry: Registry) -> list[Enabled]:
    """One point's plugins: explicit ones also in multiPoint, the rest of multiPoint, other explicit ones."""
    if "*" in chosen.disabled:
        return list(chosen.enabled)
    # A plugin that is disabled at the point leaves its multiPoint place; if enabled again, it comes last.
    spread = [
        each for each in multi if each.name not in chosen.disabled and implements(registry[each.name], point)
    ]
    names = {each.name for each in spread}
    explicit = {each.name for each in chosen.enabled}
    first = [each for each in chosen.enabled if each.name in names]
    rest = [each for each in chosen.enabled if each.name not in names]
    middle = [each for each in spread if each.name not in explicit]
    return first + middle + rest
