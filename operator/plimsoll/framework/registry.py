"""Plugin name to class: refuses duplicates, and classes that implement no extension point, on entry."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from plimsoll.framework.args import PluginArgs, parse_args
from plimsoll.framework.errors import ConfigurationError
from plimsoll.framework.extension_points import (
    BindPlugin,
    FilterPlugin,
    NormalizingPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)

#: Extension point, spelled as in a profile, to the protocol that a plugin implements for it.
EXTENSION_POINTS: Mapping[str, type] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}

#: The members that make a class implement a point; protocols with data members refuse issubclass().
_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "preEnqueue": ("pre_enqueue",),
    "queueSort": ("sort_key",),
    "preFilter": ("pre_filter",),
    "filter": ("filter", "refusal", "reads"),
    "postFilter": ("post_filter",),
    "preScore": ("pre_score",),
    "score": ("score", "reads"),
    "reserve": ("reserve", "unreserve"),
    "permit": ("permit",),
    "preBind": ("pre_bind_preflight", "pre_bind"),
    "bind": ("bind",),
    "postBind": ("post_bind",),
}

__all__ = ["EXTENSION_POINTS", "NormalizingPlugin", "Registry", "implements"]


def implements(plugin: object, point: str) -> bool:
    """Whether a plugin (class or instance) implements an extension point."""
    return all(hasattr(plugin, member) for member in _MEMBERS[point])


class Registry:
    """The plugins that a profile may name."""

    def __init__(self, plugins: Iterable[type[Plugin]] = ()) -> None:
        self._classes: dict[str, type[Plugin]] = {}
        for plugin in plugins:
            self.add(plugin)

    def __contains__(self, name: str) -> bool:
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __getitem__(self, name: str) -> type[Plugin]:
        return self._classes[name]

    def add(self, plugin: type[Plugin]) -> None:
        """Enter a class.

        Raises:
            ConfigurationError: Its name is missing or taken, it implements no extension point or only a part
                of one, or its ``args_model`` is not derived from PluginArgs.
        """
        name = getattr(plugin, "name", "")
        where = f"plugin class {plugin.__module__}.{plugin.__qualname__}"
        if not name:
            raise ConfigurationError(where, "has no name; set the class attribute `name`")
        if name in self._classes:
            raise ConfigurationError(where, f'the name "{name}" is taken by {self._classes[name].__module__}')
        for point, members in _MEMBERS.items():
            missing = [member for member in members if not hasattr(plugin, member)]
            if missing and any(hasattr(plugin, member) for member in members if member != "reads"):
                raise ConfigurationError(where, f"lacks {', '.join(missing)}, which {point} needs")
        if not any(implements(plugin, point) for point in EXTENSION_POINTS):
            raise ConfigurationError(
                where, f"implements no extension point; the points are {', '.join(EXTENSION_POINTS)}"
            )
        args_model = getattr(plugin, "args_model", None)
        if not (isinstance(args_model, type) and issubclass(args_model, PluginArgs)):
            raise ConfigurationError(where, "its args_model must be a class derived from PluginArgs")
        self._classes[name] = plugin

    def build(self, name: str, args: Mapping[str, Any] | None, path: str) -> Plugin:
        """Make an instance from the arguments of a policy.

        Args:
            name: The plugin.
            args: As written under ``pluginConfig``; None takes the defaults.
            path: Where they stand, for the sentence that refuses them.

        Raises:
            ConfigurationError: No such plugin, or arguments it does not take; names the field.
        """
        if name not in self._classes:
            known = ", ".join(sorted(self._classes))
            raise ConfigurationError(path, f'there is no plugin "{name}"; the plugins are {known}')
        plugin = self._classes[name]
        model = parse_args(plugin.args_model, args, path)
        try:
            return plugin(model)  # type: ignore[call-arg]  # protocols say nothing of __init__; the laws do
        except Exception as exc:
            problem = f"{name} does not accept these arguments: {type(exc).__name__}: {exc}"
            raise ConfigurationError(path, problem) from exc
