"""Holds the plugins and strategies of this process: ours, and those of installed packages."""

from collections.abc import Mapping, Sequence

from plimsoll.cluster.watched_resources import WatchedResource
from plimsoll.engine.profile import Enabled
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.registry import StrategyRegistry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.policies import extensions
from plimsoll.ports.observer import Observer
from plimsoll.strategies import IN_TREE as STRATEGIES


class InstalledPlugins:
    """The classes that policies may name.

    Attributes:
        registry: Scheduling plugins.
        strategies: Strategies of rebalancing.
    """

    def __init__(self) -> None:
        self.registry = Registry(IN_TREE)
        self.strategies = StrategyRegistry(STRATEGIES)

    def load_others(self, observer: Observer) -> Mapping[str, str]:
        """Add those of other packages; returns the reason for each that is left out, keyed by name."""
        return {
            **extensions.load(extensions.PLUGINS, self.registry.add, observer),
            **extensions.load(extensions.STRATEGIES, self.strategies.add, observer),
        }

    @property
    def defaults(self) -> list[Enabled]:
        """The plugins of a policy that names none, with their weights."""
        return [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name in self.registry]

    def declared(self) -> Sequence[WatchedResource]:
        """Collections that plugins and strategies read."""
        return extensions.declared(self.registry, self.strategies)

    def readers(self, kind: type) -> frozenset[str]:
        """Names of the plugins that read objects of a kind."""
        return extensions.readers(kind, self.registry)
