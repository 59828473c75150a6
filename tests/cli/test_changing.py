"""Golden files of the commands that change the cluster: approve, reject, pause and resume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.answering_server import Answering
from cli.commands import Said, say
from cli.golden_files import check
from cli.refusing_server import kubeconfig_of, refusing_server

#: In place of the address, which differs from run to run.
SHOWN = "https://cluster.example:6443"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The server."""
    with refusing_server(Answering) as one:
        yield one


def said_by(url: str, folder: Path, words: str) -> Said:
    """Run a command line in the namespace shop."""
    return say(
        *words.split(), KUBECONFIG=str(kubeconfig_of(folder / "config", f"{url}/held", namespace="shop"))
    )


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("one", "approve web-1"),
        ("list", "approve -A"),
        ("list-none", "approve -n blue"),
        ("policies", "run-now tidy"),
        ("bundle", "approve db-2"),
        ("policy", "approve --all --policy spread"),
        ("all", "approve --all -A"),
        ("none", "approve --all -n blue"),
        ("one", "reject web-1"),
        ("bundle", "reject db-2"),
        ("all", "reject --all"),
        ("operator", "pause --reason storage"),
        ("policies", "pause tidy idle"),
        ("operator", "resume -n green --lease both"),
        ("not-paused", "resume"),
        ("policies", "resume tidy idle"),
    ],
)
def test_what_is_done(url: str, tmp_path: Path, case: str, words: str) -> None:
    """One line for each object, as kubectl has it."""
    said = said_by(url, tmp_path, words)

    assert (said.code, said.err) == (0, "")
    check(words.split(maxsplit=1)[0], case, "text", said.out)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no-such-policy", "run-now tidy missing"),
        ("suspended", "run-now idle"),
        ("nothing-to-move", "run-now places"),
        ("names-everywhere", "approve web-1 -A"),
        ("no-such-record", "approve web-1 web-7"),
        ("over", "approve gone-1"),
        ("needs-none", "approve free-1"),
        ("another-policy", "reject web-2 --policy tidy"),
        ("names-and-all", "reject web-1 --all"),
        ("no-such-policy", "pause tidy missing"),
        ("no-lease", "pause --lease missing"),
        ("several-leases", "resume --lease both"),
        ("no-lease-here", "resume -n blue"),
    ],
)
def test_errors(url: str, tmp_path: Path, case: str, words: str) -> None:
    """One line that says what is wrong, and what to do."""
    said = said_by(url, tmp_path, words)

    assert (said.code, said.out) == (1, "")
    check(words.split(maxsplit=1)[0], case, "error", said.err.replace(url, SHOWN))
