"""kubectl's flags, which all commands accept with the same meaning, before or after the verb."""

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from plimsoll.commands.errors import UserError
from plimsoll.commands.parameters import Option

if TYPE_CHECKING:
    from plimsoll.model.selectors import Selector


class Format(StrEnum):
    """The values of ``-o``."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    JSONPATH = "jsonpath"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of one call; flags that a command does not accept have their defaults.

    Attributes:
        kubeconfig: From ``--kubeconfig`` or KUBECONFIG, which may list several files; None means the default.
        context: A context of the kubeconfig; "" means its current one.
        namespace: As given, "" if it was not; see :meth:`where`.
        selector: As given; see :meth:`labels`.
        output: One of the command's formats; of jsonpath with ``=`` and its template.
        color: ``auto``, ``always`` or ``never``.
        watch: Whether the answer is given again whenever it changes.
    """

    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = ""
    all_namespaces: bool = False
    selector: str = ""
    output: str = ""
    color: str = "auto"
    watch: bool = False

    def where(self) -> str:
        """The namespace to read: the given one, else that of the context; "" means all."""
        from plimsoll.kube.session.credentials import present_namespace  # noqa: PLC0415 - for this alone

        if self.all_namespaces:
            return ""
        return self.namespace or present_namespace(self.kubeconfig, self.context)

    def namespace_of(self, text: str, written: str) -> str:
        """The namespace of an object that ``text`` names, which has ``written`` as its own or "".

        Raises:
            UserError: ``--namespace`` is another one.
        """
        if written and self.namespace and written != self.namespace:
            raise UserError(f'--namespace {self.namespace} contradicts "{text}"; leave one of them out')
        return written or self.namespace

    def labels(self) -> "Selector":
        """The label selector; it selects everything if none was given.

        Raises:
            UserError: The text is not a selector.
        """
        from plimsoll.model.selector_text import parse_selector  # noqa: PLC0415 - for this alone
        from plimsoll.model.selectors import EVERYTHING, SelectorError  # noqa: PLC0415 - likewise

        if not self.selector:
            return EVERYTHING
        try:
            return parse_selector(self.selector)
        except SelectorError as exc:
            raise UserError(f"--selector: {exc}") from exc


class Flag(Enum):
    """A flag with its type and help; its name is that of the attribute of :class:`Options`."""

    KUBECONFIG = (
        Path | None,
        Option("--kubeconfig", help="Path to the kubeconfig file to use."),
    )
    CONTEXT = (str, Option("--context", help="The name of the kubeconfig context to use."))
    NAMESPACE = (str, Option("--namespace", "-n", help="The namespace; left out, the context's."))
    ALL_NAMESPACES = (bool, Option("--all-namespaces", "-A", help="Look in all namespaces."))
    SELECTOR = (str, Option("--selector", "-l", help="Label selector, such as app=web,tier!=test."))
    OUTPUT = (str, Option("--output", "-o", help="Output format: {formats}."))
    COLOR = (str, Option("--color", metavar="auto|always|never", help="Colours; left out, on a terminal."))
    WATCH = (bool, Option("--watch", "-w", help="Answer again whenever the answer changes, until Ctrl-C."))

    @property
    def attribute(self) -> str:
        """The name of its attribute in :class:`Options`."""
        return self.name.lower()

    def annotation(self, formats: Sequence[str] = ()) -> Any:
        """The annotation of a command's parameter; ``formats`` are the command's output formats."""
        kind, option = self.value
        option = copy(option)
        option.help = option.help.format(formats="|".join(formats or FORMATS))
        return Annotated[kind, option]


#: The flags of commands that connect to a server, that read a namespace, and that print an answer.
SERVER = (Flag.KUBECONFIG, Flag.CONTEXT)
NAMESPACED = (*SERVER, Flag.NAMESPACE, Flag.ALL_NAMESPACES)
OUTPUT = (Flag.OUTPUT, Flag.COLOR)

#: The values of ``--color``, and the formats of most commands; those that list objects have NAME, too.
COLORS = ("auto", "always", "never")
FORMATS = (Format.TABLE, Format.WIDE, Format.JSON, Format.YAML, Format.JSONPATH)

#: The default of each flag.
DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Options)}


def options_of(given: dict[str, Any], formats: Sequence[str]) -> Options:
    """Build the options from the flags before and after the verb.

    Raises:
        UserError: The format is not one of the command's.
    """
    output = given.get("output") or formats[0]
    form, _, template = output.partition("=")
    if form not in formats or bool(template) != (form == Format.JSONPATH):
        allowed = ", ".join(f"{each}=TEMPLATE" if each == Format.JSONPATH else each for each in formats)
        raise UserError(f"unable to match the output format {output!r}; allowed: {allowed}")
    if (color := given.get("color", COLORS[0])) not in COLORS:
        raise UserError(f"--color is {color!r}; allowed: {', '.join(COLORS)}")
    named = os.environ.get("KUBECONFIG")
    kubeconfig = given.get("kubeconfig") or (Path(named) if named else None)
    return Options(**{**given, "kubeconfig": kubeconfig, "output": output})
