"""Parameters of commands, declared in annotations: ``Annotated[T, Option("--flag", help=...)]``.

A function's parameters become click's: ``str``, ``int``, ``float``, ``bool`` (a flag), ``Path``, a
``StrEnum``, and lists of these, which are repeatable. One with a default is optional; help shows it.
"""

import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

import click


class Option:
    """A parameter ``--like-this``.

    Args:
        flags: How it is spelled; left out, as the parameter is named.
        metavar: What help shows for its value; left out, its type.
        minimum: The smallest number.
        maximum: The largest number.
        file_okay: Whether an existing file may be named.
        dir_okay: Whether an existing folder may be named.
    """

    def __init__(
        self,
        *flags: str,
        help: str,  # noqa: A002 - as in click
        metavar: str | None = None,
        minimum: int | None = None,
        maximum: int | None = None,
        file_okay: bool = True,
        dir_okay: bool = True,
        hidden: bool = False,
    ) -> None:
        self.flags = flags
        self.help = help
        self.metavar = metavar
        self.minimum, self.maximum = minimum, maximum
        self.file_okay, self.dir_okay = file_okay, dir_okay
        self.hidden = hidden


class Argument(Option):
    """A parameter without a flag."""


class Bounded(click.IntRange):
    """An integer within bounds; click's own name for it is that of a type."""

    name = "integer"


class ShownArgument(click.Argument):
    """An argument with help; click has none for arguments."""

    def __init__(self, name: str, shown: str, purpose: str, **settings: Any) -> None:
        super().__init__([name], **settings)
        self.shown = shown  #: name and type
        self.purpose = purpose

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """``{POD}`` if it is required, ``[POLICY]...`` if it is not and may be repeated."""
        name = f"{{{self.human_readable_name}}}" if self.required else f"[{self.human_readable_name}]"
        return [name if self.nargs == 1 else f"{name}..."]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002 - click's signature
        """Name with type, and help."""
        return self.shown, self.purpose + ("  [required]" if self.required else "")

    def make_metavar(self, ctx: click.Context) -> str:  # noqa: ARG002 - click's signature
        """As errors name it."""
        return self.human_readable_name


class ParameterCommand(click.Command):
    """A command with help for its arguments; ``verb`` describes it."""

    verb: Any = None

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of arguments under our title."""
        records = [
            each.get_help_record(ctx) for each in self.get_params(ctx) if isinstance(each, ShownArgument)
        ]
        if records:
            with formatter.section("Arguments"):
                formatter.write_dl(records)


def parameters_of(run: Callable[..., object], without: int = 0) -> list[click.Parameter]:
    """The parameters of a function, except for the first ``without``."""
    declared = list(inspect.signature(run, eval_str=True).parameters.values())[without:]
    return [parameter(each.name, each.annotation, each.default) for each in declared]


def parameter(name: str, annotation: Any, default: Any) -> click.Parameter:
    """One parameter; ``default`` is ``inspect.Parameter.empty`` if it must be given."""
    assert get_origin(annotation) is Annotated
    kind, declared = get_args(annotation)
    given = [each for each in get_args(kind) if each is not types.NoneType]
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = given
    is_list = get_origin(kind) is list
    element = get_args(kind)[0] if is_list else kind
    is_required = default is inspect.Parameter.empty
    converted, shown = _type_of(element, declared)
    shown = f"<list[{element.__name__}]>" if is_list else f"<{shown}>"
    settings: dict[str, Any] = {"type": converted, "required": is_required}
    if not (is_required or default is None):
        settings["default"] = default
    if isinstance(declared, Argument):
        metavar = declared.metavar or name
        return ShownArgument(
            name, f"{metavar} {shown}", declared.help, metavar=metavar, nargs=-1 if is_list else 1, **settings
        )
    if element is bool:
        settings = {"is_flag": True, "default": default}
    return click.Option(
        [name, *(declared.flags or (f"--{name.replace('_', '-')}",))],
        help=declared.help,
        metavar=declared.metavar or shown,
        multiple=is_list,
        hidden=declared.hidden,
        show_default=default not in ("", None, inspect.Parameter.empty),
        **settings,
    )


def values_of(values: dict[str, Any]) -> dict[str, Any]:
    """What click has read, with lists for its tuples, and None where nothing was given."""
    return {name: (list(each) or None) if isinstance(each, tuple) else each for name, each in values.items()}


def command_of(
    run: Callable[..., Any], name: str = "", parameters: Iterable[click.Parameter] | None = None
) -> click.Command:
    """A function with declared parameters as a command; its docstring is the help."""
    params = list(parameters_of(run) if parameters is None else parameters)
    return ParameterCommand(
        name or run.__name__,
        callback=lambda **values: run(**values_of(values)),
        params=params,
        help=run.__doc__,
        context_settings=SETTINGS,
    )


#: Of every command.
SETTINGS = {"help_option_names": ["-h", "--help"]}


def _type_of(kind: Any, declared: Option) -> tuple[click.ParamType[Any], str]:
    """Click's type of a value, and how help shows it."""
    if kind is int:
        if (declared.minimum, declared.maximum) == (None, None):
            return click.INT, "int"
        return Bounded(declared.minimum, declared.maximum), "int range"
    if kind is Path:
        places = {(True, True): "path", (True, False): "file", (False, True): "dir"}
        shown = places[declared.file_okay, declared.dir_okay]
        path = click.Path(file_okay=declared.file_okay, dir_okay=declared.dir_okay, path_type=Path)
        return path, shown
    if isinstance(kind, type) and issubclass(kind, Enum):
        values = [str(each.value) for each in kind]
        return click.Choice(values), "|".join(values)
    return click.types.convert_type(kind), kind.__name__


class OrderedCommand(ParameterCommand):
    """Lists the given flags in its parameter ``order``, in order and with repeats.

    Attributes:
        pairs: Flags that take two words each; their value is both words, joined by a space.
    """

    pairs: ClassVar[frozenset[str]] = frozenset()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the flags twice: the first pass only records their order."""
        words = list(_joined(args, self.pairs))
        *_, order = self.make_parser(ctx).parse_args(args=list(words))
        rest = super().parse_args(ctx, words)
        ctx.params["order"] = [parameter.name for parameter in order]
        return rest


def _joined(args: Sequence[str], pairs: frozenset[str]) -> Iterator[str]:
    """The words, with the two words of pairs joined."""
    words = iter(args)
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag not in pairs:
            yield word
            continue
        first = word if equals else next(words, None)
        second = None if first is None else next(words, None)
        if not equals:
            yield word
        if first is not None:
            is_value = second is not None and not second.startswith("--")
            yield f"{first} {second}" if is_value else first
            if second is not None and not is_value:
                yield second
