"""Completes command lines: verbs and flags from the commands, object names from the cluster.

kubectl runs ``kubectl_complete-plimsoll WORD… INCOMPLETE`` for ``kubectl plimsoll <TAB>``. It prints one
candidate per line, with a tab before its description. The last line is a directive of cobra: ``:4`` completes
no files, ``:0`` does. The scripts of ``plimsoll completion`` run the same program. A cluster that does not
answer within ``PATIENCE_S`` contributes no names.

Source: spf13/cobra v1.9, ``completions.go``; kubectl v1.36, ``plugin_completion.go``.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.commands.options import COLORS, Flag, Format, Options, options_of
from plimsoll.commands.parameters import ParameterCommand
from plimsoll.commands.verbs import Verb

#: Seconds to wait for object names, and the maximum number to request.
PATIENCE_S, MOST = 3.0, 500

#: API paths of the kinds that can be completed; ``{}`` is replaced by a namespace.
_PATHS = {
    "policies": "/apis/plimsoll.dev/v1alpha1/schedulingpolicies",
    "records": "/apis/plimsoll.dev/v1alpha1/{}evictions",
    "pods": "/api/v1/{}pods",
    "podgroups": "/apis/plimsoll.dev/v1alpha1/{}podgroups",
    "nodes": "/api/v1/nodes",
    "namespaces": "/api/v1/namespaces",
}

#: Kinds of objects that values of flags name.
_VALUES = {
    "--namespace": "namespaces",
    "--policy": "policies",
    **dict.fromkeys(("--drain", "--cordon", "--uncordon", "--remove-node", "--label", "--taint"), "nodes"),
}

#: Flags whose values are files.
_FILES = {"--kubeconfig", "--from", "--filename", "--directory", "--against", "--trace", "--out"}

Candidates = list[tuple[str, str]]


@dataclass(slots=True)
class CommandLine:
    """A command line up to the word to complete.

    Attributes:
        command: Click's command of the last verb read.
        path: The verbs read.
        given: Values of flags, by their long names.
        pending: The long name of the flag whose value comes next; "" without one.
    """

    command: Any
    path: tuple[str, ...] = ()
    given: dict[str, str] = field(default_factory=dict)
    pending: str = ""

    def read(self, word: str) -> None:
        """Read one word."""
        if self.pending:
            self.given[self.pending], self.pending = word, ""
        elif word.startswith("-"):
            spelled, is_whole, value = word.partition("=")
            option = self._options().get(spelled)
            if option is None or option.is_flag:
                self.given |= {} if option is None else {_long(option): "true"}
            elif is_whole:
                self.given[_long(option)] = value
            else:
                self.pending = _long(option)
        elif word in self.verbs():
            self.command, self.path = self.verbs()[word], (*self.path, word)

    def verbs(self) -> Mapping[str, Any]:
        """The commands below the current one, keyed by name."""
        below: Mapping[str, Any] = vars(self.command).get("commands", {})
        return below

    def flags(self) -> Candidates:
        """The long flags of the current command."""
        options = {_long(option): option for option in self._options().values()}
        return [(name, str(option.help or "")) for name, option in options.items()]

    def _options(self) -> Mapping[str, Any]:
        params = [param for param in self.command.params if param.param_type_name == "option"]
        return {spelled: param for param in params for spelled in param.opts}


def _long(option: Any) -> str:
    return str(max(option.opts, key=len))


def candidates(command: Any, words: Sequence[str]) -> tuple[Candidates, bool]:
    """Completions of the last word with descriptions, and whether it may be a file.

    Args:
        command: Click's command of the whole command line.
        words: The words after the program's name; the last one is incomplete.
    """
    *read, incomplete = words or [""]
    line = CommandLine(command)
    for word in read:
        line.read(word)
    verb: Verb | None = line.command.verb if isinstance(line.command, ParameterCommand) else None
    if line.pending:
        found = _values(line, verb)
    elif incomplete.startswith("-"):
        found = line.flags()
    elif line.verbs():
        found = list(line.command.commands.summaries.items())
    else:
        found = _named(verb.completes if verb else "", line.given, incomplete)
    is_file = line.pending in _FILES if line.pending else verb is not None and not verb.completes
    return [each for each in found if each[0].startswith(incomplete)], is_file


def _values(line: CommandLine, verb: Verb | None) -> Candidates:
    """Possible values of the pending flag."""
    if line.pending == "--output":
        return (
            [(f"{form}=" if form == Format.JSONPATH else form, "") for form in verb.formats] if verb else []
        )
    if line.pending == "--color":
        return [(each, "") for each in COLORS]
    if line.pending == "--context":
        from plimsoll.kube.session.credentials import contexts  # noqa: PLC0415 - for this alone

        return [(name, "") for name in contexts(_options(line.given).kubeconfig)]
    return _named(_VALUES.get(line.pending, ""), line.given, "")


def _options(given: Mapping[str, str]) -> Options:
    """The options of the flags that were read."""
    known = {f"--{flag.attribute.replace('_', '-')}": flag.attribute for flag in Flag}
    named: dict[str, Any] = {known[name]: value for name, value in given.items() if name in known}
    named.pop("output", None)
    if "kubeconfig" in named:
        named["kubeconfig"] = Path(named["kubeconfig"])
    return options_of(named, ("table",))


def _named(kind: str, given: Mapping[str, str], incomplete: str) -> Candidates:
    """The names of objects in the cluster; ``NAMESPACE/NAME`` where the word begins with a namespace."""
    if not kind:
        return []
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - for this alone
    from plimsoll.commands.errors import UserError  # noqa: PLC0415 - likewise
    from plimsoll.kube.session.session import Session  # noqa: PLC0415 - likewise

    options = _options(given)
    elsewhere, slash, _ = incomplete.rpartition("/")
    where = elsewhere if slash else options.where()

    async def ask(session: Session) -> Candidates:
        path = _PATHS[kind].format(f"namespaces/{where}/" if where else "")
        async with asyncio.timeout(PATIENCE_S):
            listed = await session.object("GET", path, params={"limit": str(MOST)})
        names = [item["metadata"]["name"] for item in listed.get("items") or ()]
        return [(f"{elsewhere}/{name}" if slash else name, "") for name in names]

    try:
        return with_session(options, ask)
    except (UserError, TimeoutError):
        return []


def main() -> None:
    """The console script ``kubectl_complete-plimsoll``."""
    from plimsoll.commands.program import app  # noqa: PLC0415 - a circle otherwise

    found, is_file = candidates(app, sys.argv[1:])
    lines = [f"{name}\t{purpose}" if purpose else name for name, purpose in found]
    sys.stdout.writelines(f"{line}\n" for line in [*lines, ":0" if is_file and not found else ":4"])
