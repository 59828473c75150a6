"""Golden files of the commands about the installation: crds, completion and version."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cli.commands import say
from cli.golden_files import check
from plimsoll.version import __version__


@pytest.mark.parametrize(("case", "options"), [("definitions", ()), ("examples", ("--examples",))])
def test_objects_of_crds(case: str, options: tuple[str, ...]) -> None:
    """Kind and name of each; test_crds.py compares their content with the files of the tree."""
    said = say("crds", *options)

    assert (said.code, said.err) == (0, "")
    objects = [f"{each['kind']} {each['metadata']['name']}\n" for each in yaml.safe_load_all(said.out)]
    check("crds", case, "text", "".join(objects))


@pytest.mark.parametrize("case", ["bash", "zsh", "fish"])
def test_scripts_of_completion(case: str) -> None:
    """As a shell loads them."""
    said = say("completion", case)

    assert (said.code, said.err) == (0, "")
    check("completion", case, "text", said.out)


def test_the_version() -> None:
    """Alone on a line."""
    said = say("version")

    assert (said.code, said.err) == (0, "")
    check("version", "version", "text", said.out.replace(__version__, "9.9.9"))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("crds-directory", ("crds", "-d", "file")),
        ("crds-operand", ("crds", "policies")),
        ("completion-shell", ("completion", "csh")),
        ("completion-none", ("completion",)),
        ("version-operand", ("version", "1")),
    ],
)
def test_errors(case: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line."""
    monkeypatch.chdir(tmp_path)
    Path("file").touch()

    said = say(*words)

    assert (said.code, said.out) == (1, "")
    command, _, short = case.partition("-")
    check(command, short, "error", said.err)
