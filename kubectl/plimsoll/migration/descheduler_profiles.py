"""Profiles of a DeschedulerPolicy as descheduler builds them: an evictor and strategies with their arguments.

Source: descheduler v0.36, ``pkg/framework/profile/profile.go`` and ``pkg/descheduler/policyconfig.go``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from plimsoll.framework import ConfigurationError
from plimsoll.framework.args import parse_args
from plimsoll.framework.descheduling.context import Evictor
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.framework.descheduling.strategy import Strategy, StrategyKind
from plimsoll.migration.descheduler_file import PROMETHEUS, DeschedulerProfile, as_decoded
from plimsoll.migration.documents import Path
from plimsoll.migration.report import path_text
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.strategies.default_evictor import DefaultEvictorArgs
from plimsoll.strategies.low_node_utilization import LowNodeUtilizationArgs

STRATEGIES = StrategyRegistry(IN_TREE)
EVICTOR_CLASSES = EvictorRegistry(EVICTORS)

EVICTOR = "DefaultEvictor"


class EnabledStrategy(Struct, frozen=True):
    """A strategy of a profile.

    Attributes:
        args: Arguments as written, without nulls.
        enabled_at: Path at which it is enabled.
        args_at: Path of its arguments.
    """

    name: str
    args: Mapping[str, Any]
    enabled_at: Path
    args_at: Path


class CheckedProfile(Struct, frozen=True):
    """A profile that descheduler accepts.

    Attributes:
        evictor: Arguments of its DefaultEvictor, with defaults.
        evictor_args: The same as written.
        evictor_at: Path of these; None if none are written.
        strategies: In the order of execution.
        unused: Paths of configurations of plugins that are not enabled.
        unknown: Names of plugins that descheduler does not have, with their paths.
    """

    name: str
    evictor: DefaultEvictorArgs
    evictor_args: Mapping[str, Any]
    evictor_at: Path | None
    strategies: tuple[EnabledStrategy, ...]
    unused: tuple[Path, ...]
    unknown: tuple[tuple[Path, str], ...]


def checked_profile(profile: DeschedulerProfile, at: Path) -> CheckedProfile:
    """Judge the profile at a path; third-party plugins are only listed.

    Raises:
        ConfigurationError: descheduler rejects it, too; names the field.
    """
    unknown: list[tuple[Path, str]] = []
    configs = _configs(profile, at, unknown)
    strategies = []
    for where, name in _enabled(profile, at, unknown):
        if name not in configs:
            raise ConfigurationError(path_text(where), f'plugin "{name}" has no pluginConfig')
        strategies.append(EnabledStrategy(name, configs[name][1], where, configs[name][0]))
    evictor_at, evictor_args = configs.get(EVICTOR, (None, {}))
    enabled = {EVICTOR, *(each.name for each in strategies)}
    return CheckedProfile(
        profile.name,
        parse_args(DefaultEvictorArgs, evictor_args, path_text(evictor_at or at)),
        evictor_args,
        evictor_at,
        tuple(strategies),
        tuple(where[:-1] for name, (where, _) in configs.items() if name not in enabled),
        tuple(unknown),
    )


def _configs(
    profile: DeschedulerProfile, at: Path, unknown: list[tuple[Path, str]]
) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """Arguments by plugin, with their paths; the first ones count."""
    configs: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    for position, config in enumerate(profile.plugin_config):
        where = (*at, "pluginConfig", position)
        known = _class_of(config.name)
        if known is None:
            unknown.append((where, config.name))
            continue
        args = as_decoded(known.args_model, config.args)
        for field in ("apiVersion", "kind"):
            if not isinstance(args.get(field), str | None):
                raise ConfigurationError(path_text((*where, "args", field)), "must be a string")
        parsed = parse_args(known.args_model, args, path_text((*where, "args")))
        if isinstance(parsed, LowNodeUtilizationArgs):
            _check_query(parsed, path_text((*where, "args", "metricsUtilization")))
        configs.setdefault(config.name, ((*where, "args"), args))
    return configs


def _check_query(args: LowNodeUtilizationArgs, where: str) -> None:
    """Require the query here: our policies may have it elsewhere, but descheduler reads only this place."""
    metrics = args.metrics_utilization
    if metrics is None or metrics.source != PROMETHEUS:
        return
    if metrics.prometheus is None or not metrics.prometheus.query:
        raise ConfigurationError(where, "prometheus query is required with source Prometheus")


def _enabled(
    profile: DeschedulerProfile, at: Path, unknown: list[tuple[Path, str]]
) -> Iterator[tuple[Path, str]]:
    """Paths at which strategies are enabled, by kind; filters are only judged."""
    for point in ("filter", "preevictionfilter", *(kind.value for kind in StrategyKind)):
        for position, name in enumerate(getattr(profile.plugins, point).enabled):
            where = (*at, "plugins", point, "enabled", position)
            if _class_of(name) is None:
                unknown.append((where, name))
            elif name in STRATEGIES and STRATEGIES[name].kind.value == point:
                yield where, name
            elif name in STRATEGIES or point in ("deschedule", "balance"):
                raise ConfigurationError(path_text(where), f'there is no plugin "{name}" for it')


def _class_of(name: str) -> type[Evictor | Strategy] | None:
    if name in EVICTOR_CLASSES:
        return EVICTOR_CLASSES[name]
    return STRATEGIES[name] if name in STRATEGIES else None  # noqa: SIM401 - a registry has no get
