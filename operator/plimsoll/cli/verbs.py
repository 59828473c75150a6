"""Describes commands as values, from which the typer application is built.

A verb lists its flags. They are added to its signature, and their values reach its function as one
:class:`Options`. The group above the verb takes the same flags, so that they may precede the verb.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from plimsoll.cli.errors import UserError, guarded
from plimsoll.cli.options import DEFAULTS, Flag, Format, options_of


@dataclass(frozen=True, slots=True)
class Verb:
    """One command.

    Attributes:
        run: Its function; the docstring is the help. With flags, its first parameter is the :class:`Options`.
        flags: The flags that it takes.
        formats: The values of ``-o``; the first is the default.
        completes: The kind that its arguments name (:mod:`plimsoll.cli.completion`), such as ``pods``.
        command: The typer class that parses it.
    """

    name: str
    run: Callable[..., None]
    flags: tuple[Flag, ...] = ()
    formats: tuple[str, ...] = tuple(Format)
    completes: str = ""
    command: type[TyperCommand] = TyperCommand

    @property
    def summary(self) -> str:
        """The first sentence of its help."""
        return cleandoc(self.run.__doc__ or "").partition("\n")[0]


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A word with verbs below it, such as ``explain``; ``aliases`` are their other names, as ``po``."""

    name: str
    help: str
    verbs: tuple[Verb, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)


class AliasedGroup(TyperGroup):
    """A group whose verbs accept kubectl's spellings of kinds: ``pods NAME``, ``po/NAME``."""

    aliases: ClassVar[Mapping[str, str]] = {}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve aliases; the name after a slash becomes the first argument."""
        kind, slash, name = args[0].partition("/")
        verb = self.aliases.get(kind, kind)
        if verb in self.commands:
            args = [verb, *([name] if slash else ()), *args[1:]]
        return super().resolve_command(ctx, args)


class GuardedGroup(TyperGroup):
    """The whole command line, inside the error boundary."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,  # noqa: ARG002 - completion is a command of its own
        standalone_mode: bool = True,  # noqa: ARG002 - it always exits
        windows_expand_args: bool = True,  # noqa: ARG002 - by the shell
        **extra: Any,
    ) -> NoReturn:
        """Run a command and exit."""
        called = prog_name or Path(sys.argv[0]).name
        name = "kubectl plimsoll" if called.startswith("kubectl") else "plimsoll"
        words = list(sys.argv[1:] if args is None else args)

        def run() -> None:
            with self.make_context(name, words, **extra) as context:
                self.invoke(context)

        raise SystemExit(guarded(run))


def application(
    purpose: str, entries: Sequence[Verb | VerbGroup], version: Callable[[], None]
) -> typer.Typer:
    """Build the typer application of all commands; ``version`` prints the version."""
    verbs = [verb for entry in entries for verb in (entry.verbs if isinstance(entry, VerbGroup) else [entry])]

    class Ordered(GuardedGroup):
        def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - click's signature
            """The commands in the order of the entries; typer would list groups last."""
            return [entry.name for entry in entries]

    app = _group(purpose, cls=Ordered)
    app.callback()(_before(_flags(verbs), version))
    for entry in entries:
        if isinstance(entry, Verb):
            app.command(entry.name, cls=entry.command, short_help=entry.summary)(_command(entry))
            continue
        group = _group(entry.help, type("Aliased", (AliasedGroup,), {"aliases": entry.aliases}))
        group.callback()(_before(_flags(entry.verbs), None))
        for verb in entry.verbs:
            group.command(verb.name, cls=verb.command, short_help=verb.summary)(_command(verb))
        app.add_typer(group, name=entry.name, short_help=entry.help)
    return app


def _group(purpose: str, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    return typer.Typer(
        cls=cls,
        help=purpose,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _flags(verbs: Iterable[Verb]) -> tuple[Flag, ...]:
    """The flags that any of the verbs takes."""
    taken = {flag for verb in verbs for flag in verb.flags}
    return tuple(flag for flag in Flag if flag in taken)


def _before(flags: tuple[Flag, ...], version: Callable[[], None] | None) -> Callable[..., None]:
    """Build the callback before a verb: it stores the given flags, and prints help if there is no verb."""

    def run(typer_context: typer.Context, **values: Any) -> None:
        if version is not None and values.pop("version"):
            version()
            raise typer.Exit
        if typer_context.invoked_subcommand is None:
            typer.echo(typer_context.get_help())
            raise typer.Exit
        _keep(typer_context, values)

    parameters = _parameters(flags)
    if version is not None:
        shown = Annotated[bool, typer.Option("--version", help="Print the version.")]
        parameters.append(_parameter("version", shown, default=False))
    return _signed(run, [_CONTEXT, *parameters], None)


def _command(verb: Verb) -> Callable[..., None]:
    """The function of a verb for typer: its signature has the flags in place of the options."""
    own = list(inspect.signature(verb.run, eval_str=True).parameters.values())[bool(verb.flags) :]
    names = {flag.attribute for flag in verb.flags}

    def run(typer_context: typer.Context, **values: Any) -> None:
        _keep(typer_context, {name: values.pop(name) for name in names})
        given: dict[str, Any] = typer_context.meta.get(_GIVEN, {})
        # ``run`` has a --kubeconfig of its own, which may precede the verb, too.
        values |= {name: given[name] for name in given.keys() & values.keys()}
        if foreign := sorted(given.keys() - names - values.keys()):
            raise UserError(f"{verb.name} has no flag --{foreign[0].replace('_', '-')}; see --help")
        verb.run(*([options_of(given, verb.formats)] if verb.flags else ()), **values)

    return _signed(run, [_CONTEXT, *own, *_parameters(verb.flags, verb.formats)], verb.run.__doc__)


def _keep(context: typer.Context, values: Mapping[str, Any]) -> None:
    """Store the given flags; a later value wins."""
    given = context.meta.setdefault(_GIVEN, {})
    given.update({name: value for name, value in values.items() if value != DEFAULTS[name]})


def _parameters(flags: Iterable[Flag], formats: Sequence[str] = ()) -> list[inspect.Parameter]:
    return [
        _parameter(flag.attribute, flag.annotation(formats), default=DEFAULTS[flag.attribute])
        for flag in flags
    ]


def _parameter(name: str, annotation: Any, *, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _signed(
    run: Callable[..., None], parameters: Sequence[inspect.Parameter], doc: str | None
) -> Callable[..., None]:
    """The function with a signature for typer, which reads annotations, too."""
    run.__doc__ = doc
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined] # inspect reads it
    return run


#: Key of the given flags in typer's context.
_GIVEN = "plimsoll.flags"
_CONTEXT = inspect.Parameter("typer_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
