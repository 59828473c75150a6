"""Registers the strategies and evictors that a policy may name."""

from typing import ClassVar, TypeVar

from plimsoll.framework.capabilities import problem_of_declared
from plimsoll.framework.descheduling.context import Evictor
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.framework.registry import ClassRegistry

SourceT = TypeVar("SourceT", Strategy, Evictor)


class _SourceRegistry(ClassRegistry[SourceT]):
    members: ClassVar[tuple[str, ...]]

    def _problem(self, source: type[SourceT]) -> str:
        missing = [member for member in self.members if not hasattr(source, member)]
        return f"lacks {', '.join(missing)}" if missing else problem_of_declared(source)


class StrategyRegistry(_SourceRegistry[Strategy]):
    """The strategies that a policy may name."""

    what = "strategy"
    listing = "the strategies are"
    members = ("name", "kind", "candidates")


class EvictorRegistry(_SourceRegistry[Evictor]):
    """The evictors that a policy may name."""

    what = "evictor"
    members = ("name", "filter", "pre_eviction_filter")
