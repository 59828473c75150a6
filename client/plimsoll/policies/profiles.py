"""Builds the profile of each served policy, and the scheduler that decides by it."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.engine.nominator import Nominator
from plimsoll.engine.profile import MULTI_POINT, Enabled, PluginSet, Profile, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER
from plimsoll.model.shortened import shortened
from plimsoll.planning.forecasts import Forecasts
from plimsoll.ports.clock import Randomness
from plimsoll.ports.observer import Observer
from plimsoll.timing.signal import Signal
from plimsoll.toolkit.scheduling.topology_levels import GroupRules

#: Maximum length of a failure's sentence, in characters.
SENTENCE = 300


#: Seconds of a call above which it holds up all pods, and the number of them in a row that is reported.
SLOW_S, SLOW_CALLS = 0.1, 3

#: Extension points whose calls wait concurrently with the scheduling loop.
AWAITED = frozenset({"preBind", "bind"})


class PluginFailures(Observer):
    """Collects the failures of plugins, and which of them are slow, as far as their calls are timed.

    Args:
        conditions: Notified of each new kind of failure.
        ours: Plugins that are not reported as slow: no user can mend them.
        observer: Notified of slow plugins.
    """

    def __init__(
        self, conditions: Signal, ours: Collection[str] = (), observer: Observer | None = None
    ) -> None:
        self._sentences: dict[tuple[str, str], str] = {}
        self._slow: dict[tuple[str, str], tuple[int, float]] = {}  #: calls in a row, and the longest
        self._conditions, self._ours = conditions, ours
        self._observer = observer or Observer()

    def plugin_called(self, plugin: str, point: str, failed: bool, seconds: float) -> None:  # noqa: ARG002 - the hook's shape
        """Count slow calls in a row; a fast one ends them."""
        key = plugin, point
        if seconds <= SLOW_S:
            if self._slow.pop(key, (0,))[0] >= SLOW_CALLS:
                self._conditions.notify()
        elif plugin not in self._ours and point not in AWAITED:
            calls, longest = self._slow.get(key, (0, 0.0))
            self._slow[key] = calls + 1, max(longest, seconds)
            if calls + 1 >= SLOW_CALLS:
                self._observer.plugin_slow(plugin, point, seconds)
            if calls + 1 == SLOW_CALLS:
                self._conditions.notify()

    def slow(self, plugins: Collection[str]) -> list[str]:
        """The sentences about those of these plugins that are slow."""
        return [
            f'plugin "{plugin}" takes up to {longest:.1f} s a call at {point}; no pod is placed meanwhile'
            for (plugin, point), (calls, longest) in sorted(self._slow.items())
            if calls >= SLOW_CALLS and plugin in plugins
        ]

    def plugin_failed(self, plugin: str, point: str, problem: str, trace: str = "") -> None:  # noqa: ARG002 - for the log
        """Record the first failure of a plugin at an extension point."""
        if (plugin, point) not in self._sentences:
            text = f'plugin "{plugin}" failed at {point}: {problem}'
            self._sentences[plugin, point] = shortened(text, SENTENCE)
            self._conditions.notify()

    def of(self, plugins: Collection[str]) -> list[str]:
        """The sentences about the failures of these plugins."""
        return [text for (plugin, _), text in sorted(self._sentences.items()) if plugin in plugins]

    def forgive(self, plugins: Collection[str]) -> None:
        """Forget the failures of these plugins."""
        self._sentences = {key: text for key, text in self._sentences.items() if key[0] not in plugins}
        self._slow = {key: calls for key, calls in self._slow.items() if key[0] not in plugins}


#: The plugin that counts resources, unless an extender does.
FIT = "NodeResourcesFit"

#: The plugin that ``spec.scheduling.fairShare`` enables.
FAIR_SHARE = "FairShare"


class ExtenderEquipment(Protocol):
    """Adds the extenders of a policy to its profile."""

    def check(self, spec: SchedulingSpec) -> None:
        """Raise ConfigurationError if an extender cannot be used."""

    def equip(self, profile: Profile, spec: SchedulingSpec) -> Profile:
        """The profile with the policy's extenders."""

    async def retain(self, schedulers: Iterable[str]) -> None:
        """Close the connections to extenders of other profiles."""

    def failing(self, scheduler_name: str) -> Sequence[str]:
        """Sentences about the failures of a profile's extenders."""


class ProfileSchedulers:
    """Holds one scheduler for each served scheduler name, with its state, until its spec changes.

    Args:
        registry: The available scheduling plugins.
        nominator: Shared by all schedulers, which only read it.
        extending: Sends requests to the extenders of the policies.
    """

    def __init__(
        self,
        *,
        registry: Registry,
        defaults: Sequence[Enabled],
        cluster: Cluster,
        nominator: Nominator,
        randomness: Randomness,
        failures: PluginFailures,
        extending: ExtenderEquipment,
        observer: Observer,
    ) -> None:
        self._registry = registry
        self._defaults = defaults
        self._cluster = cluster
        self._nominator = nominator
        self._randomness = randomness
        self._failures = failures
        self._extending = extending
        self._observer = observer
        self._schedulers: dict[str, tuple[SchedulingSpec, ProfileScheduler]] = {}
        self._default = build_profile(ProfileConfig(DEFAULT_SCHEDULER), registry, defaults)
        self._described: dict[str, tuple[SchedulingSpec, Profile]] = {}
        self._unbuilt: dict[str, str] = {}  #: why scheduler names have no scheduler of their present spec

    @property
    def schedulers(self) -> Mapping[str, ProfileScheduler]:
        """The schedulers, keyed by scheduler name."""
        return {name: scheduler for name, (_, scheduler) in self._schedulers.items()}

    @property
    def forecasts(self) -> Forecasts:
        """The profiles that are assumed for other schedulers."""
        described = {name: profile for name, (_, profile) in self._described.items()}
        return Forecasts(described, self._default)

    def find(self, name: str) -> ProfileScheduler | None:
        """The scheduler of a name; None if no policy serves it."""
        found = self._schedulers.get(name)
        return found[1] if found else None

    def check(self, spec: SchedulingSpec) -> tuple[str, object]:
        """Build the profile once; returns the plugin that sorts the queue, with its arguments.

        Raises:
            ConfigurationError: A name in the spec does not exist, or its plugin cannot be used.
        """
        self._extending.check(spec)
        config = profile_config(spec)
        sort = build_profile(config, self._registry, self._defaults).queue_sort.name
        return sort, config.args.get(sort) or {}

    def serve(self, serving: Mapping[str, SchedulingSpec], policies: Mapping[str, str]) -> None:
        """Build schedulers for new or changed profiles; unchanged ones keep their state."""
        for name in [name for name in self._schedulers if name not in serving]:
            del self._schedulers[name]
        self._unbuilt = {}
        for name, spec in serving.items():
            known = self._schedulers.get(name)
            if known is not None and known[0] == spec and known[1].profile.policy == policies[name]:
                continue
            try:
                profile = build_profile(profile_config(spec, policies[name]), self._registry, self._defaults)
                profile = self._extending.equip(profile, spec)
                scheduler = ProfileScheduler(profile, self._cluster, self._randomness.below, self._nominator)
            except BaseException as exc:  # noqa: BLE001 - building a plugin may fail; only this policy is affected
                self._observer.failed(f"profile {name}", repr(exc))
                self._unbuilt[name] = f"a plugin cannot be built: {exc!r}"[:SENTENCE]
                continue
            self._failures.forgive(profile.plugin_names)
            self._schedulers[name] = spec, scheduler

    def describe(self, described: Mapping[str, SchedulingSpec], policies: Mapping[str, str]) -> None:
        """Build the profiles that suspended policies describe; those that cannot be built are not assumed."""
        known, self._described = self._described, {}
        for name, spec in described.items():
            earlier = known.get(name)
            if earlier is not None and earlier[0] == spec and earlier[1].policy == policies[name]:
                self._described[name] = earlier
                continue
            try:
                profile = profile_of(spec, policies[name], self._registry, self._defaults)
            except BaseException as exc:  # noqa: BLE001 - as above
                self._observer.failed(f"profile {name}", repr(exc))
                continue
            self._described[name] = spec, profile

    async def retain_extenders(self) -> None:
        """Close the connections to extenders that no served profile names."""
        await self._extending.retain(self._schedulers)

    def failing(self, name: str) -> dict[str, str]:
        """Sentences about the failures of a profile's plugins and extenders, by reason."""
        if name in self._unbuilt:
            return {"PluginFailed": self._unbuilt[name]}
        served = self.find(name)
        if served is None:
            return {}
        found = {
            "PluginFailed": self._failures.of(served.profile.plugin_names),
            "PluginSlow": self._failures.slow(served.profile.plugin_names),
            "ExtenderFailed": self._extending.failing(served.profile.scheduler_name),
        }
        return {reason: "; ".join(sentences) for reason, sentences in found.items() if sentences}


def profile_of(spec: SchedulingSpec, policy: str, registry: Registry, defaults: Sequence[Enabled]) -> Profile:
    """Build the profile of a policy; it names its extenders, but does not call them.

    Raises:
        ConfigurationError: The spec names a plugin that does not exist or cannot be used.
    """
    profile = build_profile(profile_config(spec, policy), registry, defaults)
    if not spec.extenders:
        return profile
    from plimsoll.policies.extenders import extender_of  # noqa: PLC0415 - where there are any

    return dataclasses.replace(profile, extenders=tuple(map(extender_of, spec.extenders)))


def profile_config(spec: SchedulingSpec, policy: str = "") -> ProfileConfig:
    """The ``spec.scheduling`` of a policy as plain values."""
    plugins: dict[str, PluginSet] = {}
    if spec.plugins is not None:
        for attribute, model_field in type(spec.plugins).model_fields.items():
            chosen = getattr(spec.plugins, attribute)
            if chosen is not None:
                plugins[model_field.alias or attribute] = PluginSet(
                    enabled=tuple(Enabled(each.name, each.weight or 0) for each in chosen.enabled),
                    disabled=frozenset(each.name for each in chosen.disabled),
                )
    args: dict[str, Mapping[str, Any]] = {each.name: each.args for each in spec.plugin_config}
    ignored = [
        each.name for one in spec.extenders for each in one.managed_resources if each.ignored_by_scheduler
    ]
    if ignored:
        args[FIT] = {**args.get(FIT, {}), "ignoredResources": ignored}
    paths = {
        each.name: f"spec.scheduling.pluginConfig[{position}].args"
        for position, each in enumerate(spec.plugin_config)
    }
    if spec.fair_share is not None:
        multi = plugins.get(MULTI_POINT, PluginSet())
        plugins[MULTI_POINT] = replace(multi, enabled=(*multi.enabled, Enabled(FAIR_SHARE)))
        args[FAIR_SHARE], paths[FAIR_SHARE] = spec.fair_share.to_wire(), "spec.scheduling.fairShare"
    return ProfileConfig(
        scheduler_name=spec.scheduler_name,
        plugins=plugins,
        args=args,
        arg_paths=paths,
        policy=policy,
        via_eviction=spec.preemption.via_eviction,
        groups=GroupRules(
            derives=spec.groups.derive == "Automatic",
            levels=spec.groups.topology_levels,
            preferred=spec.groups.preferred_topology or "",
        ),
    )
