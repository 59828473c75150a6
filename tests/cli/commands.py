"""Runs commands in this process, and names all that there are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from click.testing import CliRunner

from plimsoll.commands.program import VERBS, app, load
from plimsoll.commands.verbs import Verb, VerbGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a command needs so that it asks a server about our kinds.
WORDS: dict[str, tuple[str, ...]] = {
    "approve": ("--all",),
    "snapshot save": ("cluster.json.gz",),
    "reject": ("--all",),
    "pause": ("rebalance",),
    "resume": ("rebalance",),
    "explain pod": ("shop/web",),
    "explain podgroup": ("shop/train",),
    "explain node": ("node-1",),
    "explain policy": ("tidy",),
    "explain eviction": ("shop/web-1",),
    "run-now": ("tidy",),
    "convert": ("policy.yaml",),
    "validate": ("manifests.yaml",),
    "pools": ("red", "--label", "pool"),
    "fit": ("-f", str(Path(__file__).with_name("deployment.yaml"))),
    "whatif": ("--drain", "node-1"),
    "drain": ("node-1",),
    "release": ("plimsoll",),
    "adopt": ("--namespace", "plimsoll"),
}


@dataclass(frozen=True, slots=True)
class Said:
    """What a command did."""

    code: int
    out: str
    err: str


def say(*words: str, **environment: str) -> Said:
    """Run ``plimsoll WORDS`` with 80 columns, piped; a traceback fails the test."""
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "80", "KUBECONFIG": None, **environment})
    assert isinstance(result.exception, SystemExit | None), result.exception
    return Said(result.exit_code, result.stdout, result.stderr)


def paths() -> Iterator[tuple[tuple[str, ...], Verb | None]]:
    """All commands as words, groups and the bare command included; those have no verb."""
    yield (), None
    for entry in map(load, VERBS):
        if isinstance(entry, VerbGroup):
            yield (entry.name,), None
            yield from (((entry.name, verb.name), verb) for verb in entry.verbs)
        else:
            yield (entry.name,), entry
