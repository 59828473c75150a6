"""The program ``plimsoll``, also ``kubectl plimsoll``: the commands of what is installed."""

import gc
import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from plimsoll.commands.kept import end
from plimsoll.commands.verbs import Verb, VerbGroup, application
from plimsoll.version import __version__

#: Modules with a table ``VERBS`` of commands, and the distribution that each comes with.
PARTS = {"plimsoll.cli.commands": "kubectl-plimsoll", "plimsoll.app.command": "plimsoll"}


def verbs() -> dict[str, tuple[str, str]]:
    """Module with attribute, and summary, of each command that is installed, in the order of the help."""
    found: dict[str, tuple[str, str]] = {}
    for part in PARTS:
        if find_spec(part.rpartition(".")[0]) is not None:
            table: Mapping[str, tuple[str, str]] = import_module(part).VERBS
            for name, (place, summary) in table.items():
                module, _, attribute = place.partition(":")
                found[name] = (f"{part}.{module}:{attribute}" if module else f"{part}:{attribute}", summary)
    return {**found, "version": ("plimsoll.commands.version:VERB", "Print the version.")}


def missing() -> str:
    """What to install for further commands; "" if all are there."""
    names = [name for part, name in PARTS.items() if find_spec(part.rpartition(".")[0]) is None]
    return f"further commands come with {' and '.join(names)}, of the same release" if names else ""


VERBS = verbs()


def load(name: str) -> Verb | VerbGroup:
    """The command of a name in ``VERBS``."""
    module, _, attribute = VERBS[name][0].partition(":")
    entry: Verb | VerbGroup = getattr(import_module(module), attribute)
    return entry


app = application(
    "A Kubernetes scheduler and descheduler in one operator.",
    {name: summary for name, (_, summary) in VERBS.items()},
    load,
    __version__,
    missing(),
)


def main() -> None:
    """The console script.

    What a command imports lives as long as the command, and a collector would look through it a dozen times.
    Commands that read a cluster, or that run for long, enable the collector. Libraries that are imported
    later start no threads for products of large matrices, which we have none of, and do not search all
    packages for extensions of models.
    """
    gc.disable()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        app()
    except SystemExit as ended:
        if isinstance(ended.code, int):
            end(ended.code)
        raise
