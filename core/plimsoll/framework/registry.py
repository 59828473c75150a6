"""Registers plugin classes and builds instances from their arguments; base class of the other registries."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from plimsoll.framework.args import PluginArgs, parse_args
from plimsoll.framework.capabilities import problem_of_declared
from plimsoll.framework.errors import ConfigurationError, UnknownPartError
from plimsoll.framework.extension_points import Plugin

#: By extension point, spelled as in a profile, the members that a class needs to implement it.
EXTENSION_POINTS: Mapping[str, tuple[str, ...]] = {
    "preEnqueue": ("pre_enqueue",),
    "queueSort": ("sort_key",),
    "preFilter": ("pre_filter",),
    "filter": ("filter", "refusal"),
    "postFilter": ("post_filter",),
    "preScore": ("pre_score",),
    "score": ("score",),
    "reserve": ("reserve", "unreserve"),
    "permit": ("permit",),
    "preBind": ("pre_bind_preflight", "pre_bind"),
    "bind": ("bind",),
    "postBind": ("post_bind",),
}


def implements(plugin: object, point: str) -> bool:
    """Whether a plugin (class or instance) implements an extension point."""
    return all(hasattr(plugin, member) for member in EXTENSION_POINTS[point])


class Registrable(Protocol):
    """The members that a registry requires of a class."""

    name: ClassVar[str]
    args_model: ClassVar[type[PluginArgs]]

    def __init__(self, args: PluginArgs) -> None:
        """Take the arguments, an instance of ``args_model``."""
        return


ClassT = TypeVar("ClassT", bound=Registrable)


class ClassRegistry(Generic[ClassT]):
    """The classes that a policy may name.

    Attributes:
        what: The kind of the classes, in error messages.
        listing: How error messages list the names.
        errors: Exceptions by which constructors reject their arguments; their texts need no class name.
    """

    what: ClassVar[str]
    listing: ClassVar[str] = "there are"
    errors: ClassVar[tuple[type[BaseException], ...]] = (TypeError, ValueError)

    def __init__(self, classes: Iterable[type[ClassT]] = ()) -> None:
        self._classes: dict[str, type[ClassT]] = {}
        for each in classes:
            self.add(each)

    def __contains__(self, name: str) -> bool:
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __getitem__(self, name: str) -> type[ClassT]:
        return self._classes[name]

    def add(self, source: type[ClassT]) -> None:
        """Register a class.

        Raises:
            ConfigurationError: It lacks required members, or its name is taken.
        """
        where = f"{self.what} class {source.__module__}.{source.__qualname__}"
        problem = self._problem(source)
        if problem:
            raise ConfigurationError(where, problem)
        if source.name in self._classes:
            taken = self._classes[source.name].__module__
            raise ConfigurationError(where, f'the name "{source.name}" is taken by {taken}')
        self._classes[source.name] = source

    def _problem(self, source: type[ClassT]) -> str:
        """The missing members of the class, "" for none."""
        raise NotImplementedError

    def find(self, name: str, path: str) -> type[ClassT]:
        """The class that a policy names at ``path``.

        Raises:
            UnknownPartError: It is not registered.
        """
        if name not in self._classes:
            known = ", ".join(sorted(self._classes))
            raise UnknownPartError(path, f'there is no {self.what} "{name}"; {self.listing} {known}')
        return self._classes[name]

    def build(self, name: str, args: Mapping[str, Any] | None, path: str) -> ClassT:
        """Create an instance from the arguments that a policy has at ``path``; None uses the defaults.

        Raises:
            ConfigurationError: Unknown name, or invalid arguments; names the field.
        """
        source = self.find(name, path)
        try:
            return source(parse_args(source.args_model, args, path))
        except ConfigurationError:
            raise
        except BaseException as exc:
            problem = f"{name} does not accept these arguments: {self._described(exc)}"
            raise ConfigurationError(path, problem) from exc

    def _described(self, exc: BaseException) -> str:
        return str(exc) if isinstance(exc, self.errors) else f"{type(exc).__name__}: {exc}"


class Registry(ClassRegistry[Plugin]):
    """The plugins that a profile may name."""

    what = "plugin"
    listing = "the plugins are"
    errors = ()

    def _problem(self, source: type[Plugin]) -> str:
        if not getattr(source, "name", ""):
            return "has no name; set the class attribute `name`"
        has_points = False
        for point, members in EXTENSION_POINTS.items():
            missing = [member for member in members if not hasattr(source, member)]
            if missing and len(missing) < len(members):
                return f"lacks {', '.join(missing)}, which {point} needs"
            has_points = has_points or not missing
        if not has_points:
            return f"implements no extension point; the points are {', '.join(EXTENSION_POINTS)}"
        args_model = getattr(source, "args_model", None)
        if not (isinstance(args_model, type) and issubclass(args_model, PluginArgs)):
            return "its args_model must be a class derived from PluginArgs"
        return problem_of_declared(source)
