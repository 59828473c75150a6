"""Strategy name to class: the strategies and evictors that a policy may name."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from plimsoll.framework.args import parse_args
from plimsoll.framework.descheduling.context import Evictor
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.framework.errors import ConfigurationError

SourceT = TypeVar("SourceT", Strategy, Evictor)

_STRATEGY_MEMBERS = ("name", "kind", "candidates")
_EVICTOR_MEMBERS = ("name", "filter", "pre_eviction_filter")


class _Registry(Generic[SourceT]):
    what: str
    members: tuple[str, ...]

    def __init__(self, classes: Iterable[type[SourceT]] = ()) -> None:
        self._classes: dict[str, type[SourceT]] = {}
        for each in classes:
            self.add(each)

    def __contains__(self, name: str) -> bool:
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __getitem__(self, name: str) -> type[SourceT]:
        return self._classes[name]

    def add(self, source: type[SourceT]) -> None:
        """Enter a class.

        Raises:
            ConfigurationError: A member is missing, or its name is taken.
        """
        where = f"{self.what} class {source.__module__}.{source.__qualname__}"
        missing = [member for member in self.members if not hasattr(source, member)]
        if missing:
            raise ConfigurationError(where, f"lacks {', '.join(missing)}")
        if source.name in self._classes:
            taken = self._classes[source.name].__module__
            raise ConfigurationError(where, f'the name "{source.name}" is taken by {taken}')
        self._classes[source.name] = source

    def build(self, name: str, args: Mapping[str, Any] | None, path: str) -> SourceT:
        """Make an instance from the arguments of a policy.

        Args:
            name: Which one.
            args: As written; None takes the defaults.
            path: Where they stand, for the sentence that refuses them.

        Raises:
            ConfigurationError: No such name, or arguments it does not take; names the field.
        """
        if name not in self._classes:
            known = ", ".join(sorted(self._classes))
            raise ConfigurationError(path, f'there is no {self.what} "{name}"; there are {known}')
        source = self._classes[name]
        model = parse_args(source.args_model, args, path)
        try:
            return source(model)  # type: ignore[call-arg]  # protocols say nothing of __init__; the laws do
        except (TypeError, ValueError) as exc:
            raise ConfigurationError(path, f"{name} does not accept these arguments: {exc}") from exc


class StrategyRegistry(_Registry[Strategy]):
    """The strategies that a policy may name."""

    what = "strategy"
    members = _STRATEGY_MEMBERS


class EvictorRegistry(_Registry[Evictor]):
    """The evictors that a policy may name."""

    what = "evictor"
    members = _EVICTOR_MEMBERS
