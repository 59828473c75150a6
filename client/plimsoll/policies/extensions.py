"""Loads third-party plugins and strategies through Python entry points.

An installed package names its classes under the group ``plimsoll.plugins`` or ``plimsoll.strategies``::

    [project.entry-points."plimsoll.plugins"]
    SameRack = "my_package.same_rack:SameRack"

They are registered after the in-tree ones, so they cannot replace an in-tree plugin; policies refer to both
in the same way. An unusable plugin is skipped, logged and counted; the others are not affected.
"""

from collections.abc import Callable, Iterable
from functools import cache
from importlib import metadata
from typing import Any

from plimsoll.cluster.watched_resources import DeclaredResource, resource_of
from plimsoll.framework import ConfigurationError, Registry
from plimsoll.framework.capabilities import declares_of
from plimsoll.framework.descheduling.registry import StrategyRegistry
from plimsoll.ports.observer import Observer

PLUGINS = "plimsoll.plugins"
STRATEGIES = "plimsoll.strategies"

#: The extension point under which a failure to load is counted.
LOADING = "load"


@cache
def _installed() -> Any:
    """All entry points of this Python environment: the metadata of every package is read for them."""
    return metadata.entry_points()


def installed(group: str) -> Iterable[metadata.EntryPoint]:
    """The entry points of one group in this Python environment."""
    found: Iterable[metadata.EntryPoint] = _installed().select(group=group)
    return found


def load(
    group: str,
    add: Callable[[Any], None],
    observer: Observer,
    found: Callable[[str], Iterable[metadata.EntryPoint]] = installed,
) -> dict[str, str]:
    """Register every class of a group (PLUGINS or STRATEGIES) through ``add``, which may reject it.

    Returns:
        A sentence for each skipped class, keyed by its name: the name, its package, and the reason.
    """
    problems: dict[str, str] = {}
    for point in sorted(found(group), key=lambda each: (_package(each), each.name)):
        try:
            loaded = point.load()
            if not isinstance(loaded, type):
                raise ConfigurationError(point.value, f"is no class but {loaded!r}")  # noqa: TRY301 - reported below
            add(loaded)
        except BaseException as exc:  # noqa: BLE001 - third-party code may raise anything
            why = str(exc) if isinstance(exc, ConfigurationError) else f"{type(exc).__name__}: {exc}"
            problem = f"{point.name} of {_package(point)} (entry point group {group}) is left out: {why}"
            observer.plugin_failed(point.name, LOADING, problem)
            problems[point.name] = "; ".join(filter(None, (problems.get(point.name), problem)))
    return problems


def declared(*registries: Registry | StrategyRegistry) -> tuple[DeclaredResource, ...]:
    """The collections that registered plugins and strategies declare, each once."""
    classes = [registry[name] for registry in registries for name in registry]
    kinds = dict.fromkeys(kind for each in classes for kind in declares_of(each).objects)
    return tuple(map(resource_of, kinds))


def readers(kind: type, registry: Registry) -> frozenset[str]:
    """The names of the plugins that declare a kind."""
    return frozenset(name for name in registry if kind in declares_of(registry[name]).objects)


@cache
def declared_here() -> tuple[DeclaredResource, ...]:
    """The same of the packages that are installed in this Python environment."""
    plugins, strategies = Registry(), StrategyRegistry()
    load(PLUGINS, plugins.add, Observer())
    load(STRATEGIES, strategies.add, Observer())
    return declared(plugins, strategies)


def _package(point: metadata.EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
