"""Describes commands as values, from which click's commands are built when they are called.

A verb lists its flags, whose values reach its function as one :class:`Options`. The group above the verb
takes the same flags, so that they may precede the verb.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, NoReturn

import click

from plimsoll.commands.errors import UserError, guarded
from plimsoll.commands.options import DEFAULTS, FORMATS, Flag, options_of
from plimsoll.commands.parameters import (
    SETTINGS,
    Option,
    ParameterCommand,
    parameter,
    parameters_of,
    values_of,
)


@dataclass(frozen=True, slots=True)
class Verb:
    """One command.

    Attributes:
        run: Its function; the docstring is the help. With flags, its first parameter is the :class:`Options`.
        flags: The flags that it takes.
        formats: The values of ``-o``; the first is the default.
        completes: The kind that its arguments name (:mod:`plimsoll.cli.completion`), such as ``pods``.
        command: The class that parses it.
    """

    name: str
    run: Callable[..., None]
    flags: tuple[Flag, ...] = ()
    formats: tuple[str, ...] = FORMATS
    completes: str = ""
    command: type[ParameterCommand] = ParameterCommand

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


class Commands(Mapping[str, click.Command]):
    """Click's commands in order, keyed by name; each is built when it is first looked up.

    Args:
        summaries: The line of each command in the list of them.
        build: Builds a command by its name.
    """

    def __init__(self, summaries: Mapping[str, str], build: Callable[[str], click.Command]) -> None:
        self.summaries = summaries
        self._built: dict[str, click.Command | None] = dict.fromkeys(summaries)
        self._build = build

    def __getitem__(self, name: str) -> click.Command:
        """The command; KeyError if it does not exist."""
        if (built := self._built[name]) is None:
            built = self._built[name] = self._build(name)
        return built

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._built)

    def __len__(self) -> int:
        """How many commands there are."""
        return len(self._built)


class AliasedGroup(click.Group):
    """A group whose verbs accept kubectl's spellings of kinds: ``pods NAME``, ``po/NAME``."""

    def __init__(self, commands: Commands, aliases: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(
            invoke_without_command=True,
            subcommand_metavar="COMMAND [ARGS]...",
            context_settings=SETTINGS,
            **settings,
        )
        self.commands: Any = commands
        self.aliases = aliases or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the order of the table; click would sort them."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the list of commands; click would build each of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.commands.summaries.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Resolve aliases; the name after a slash becomes the first argument."""
        kind, slash, name = args[0].partition("/")
        verb = self.aliases.get(kind, kind)
        if self.aliases and verb in self.commands:
            args = [verb, *([name] if slash else ()), *args[1:]]
        return super().resolve_command(ctx, args)


class GuardedGroup(AliasedGroup):
    """The whole command line, inside the error boundary."""

    def __init__(self, commands: Commands, *, missing: str, **settings: Any) -> None:
        super().__init__(commands, **settings)
        self.missing = missing

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Say of an unknown command where it may come from."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            if not self.missing:
                raise
            raise click.UsageError(f"{exc.message.rstrip('.')}; {self.missing}", ctx) from exc

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
    purpose: str,
    summaries: Mapping[str, str],
    load: Callable[[str], Verb | VerbGroup],
    version: str,
    missing: str = "",
) -> GuardedGroup:
    """Build the command line.

    Args:
        purpose: One sentence for the help.
        summaries: The line of each command, in the order of the help.
        load: Returns a command by its name; called when it is used.
        version: What ``--version`` prints.
        missing: What an unknown command is answered in addition, such as what to install.
    """
    return GuardedGroup(
        Commands(summaries, lambda name: _built(load(name))),
        missing=missing,
        help=purpose,
        callback=_before(version),
        params=[*_parameters(Flag), parameter("version", _VERSION, default=False)],
    )


def _built(entry: Verb | VerbGroup) -> click.Command:
    if isinstance(entry, Verb):
        return _command(entry)
    verbs = {verb.name: verb for verb in entry.verbs}
    taken = {flag for verb in entry.verbs for flag in verb.flags}
    return AliasedGroup(
        Commands({verb.name: verb.summary for verb in entry.verbs}, lambda name: _command(verbs[name])),
        entry.aliases,
        name=entry.name,
        help=entry.help,
        callback=_before(),
        params=_parameters(flag for flag in Flag if flag in taken),
    )


def _before(version: str = "") -> Callable[..., None]:
    """Build the callback before a verb: it stores the given flags, and prints help if there is no verb."""

    @click.pass_context
    def run(context: click.Context, /, **values: Any) -> None:
        if version and values.pop("version"):
            click.echo(version)
            context.exit()
        if context.invoked_subcommand is None:
            click.echo(context.get_help())
            context.exit()
        _keep(context, values)

    return run


def _command(verb: Verb) -> click.Command:
    names = {flag.attribute for flag in verb.flags}

    @click.pass_context
    def run(context: click.Context, /, **values: Any) -> None:
        _keep(context, {name: values.pop(name) for name in names})
        given: dict[str, Any] = context.meta.get(_GIVEN, {})
        # ``run`` has a --kubeconfig of its own, which may precede the verb, too.
        values |= {name: given[name] for name in given.keys() & values.keys()}
        if foreign := sorted(given.keys() - names - values.keys()):
            raise UserError(f"{verb.name} has no flag --{foreign[0].replace('_', '-')}; see --help")
        options = options_of(given, verb.formats)
        answered = partial(verb.run, *([options] if verb.flags else ()), **values_of(values))
        if options.watch:
            from plimsoll.commands.repeated_answers import watch  # noqa: PLC0415 - for this flag alone

            watch(answered)
        else:
            answered()

    command = verb.command(
        verb.name,
        callback=run,
        params=[*parameters_of(verb.run, bool(verb.flags)), *_parameters(verb.flags, verb.formats)],
        help=verb.run.__doc__,
        context_settings=SETTINGS,
    )
    command.verb = verb
    return command


def _keep(context: click.Context, values: Mapping[str, Any]) -> None:
    """Store the given flags; a later value wins."""
    given = context.meta.setdefault(_GIVEN, {})
    given.update({name: value for name, value in values.items() if value != DEFAULTS[name]})


def _parameters(flags: Iterable[Flag], formats: Sequence[str] = ()) -> list[click.Parameter]:
    return [parameter(flag.attribute, flag.annotation(formats), DEFAULTS[flag.attribute]) for flag in flags]


#: Key of the given flags in click's context.
_GIVEN = "plimsoll.flags"
_VERSION = Annotated[bool, Option("--version", help="Print the version.")]
