"""Help: of every command, at 80 columns, without escapes, nothing cut."""

from __future__ import annotations

import pytest

from cli.commands import paths, say
from plimsoll.commands.program import VERBS, load
from plimsoll.commands.verbs import Verb
from plimsoll.version import __version__

PATHS = [pytest.param(words, id="-".join(words) or "plimsoll") for words, _ in paths()]


@pytest.mark.parametrize("words", PATHS)
def test_help_fits_into_80_columns(words: tuple[str, ...]) -> None:
    """Also by -h, and nothing ends in dots for want of room."""
    said = say(*words, "--help")

    assert said.code == 0
    assert said.err == ""
    assert max(map(len, said.out.splitlines())) <= 80
    assert "\x1b" not in said.out
    assert not [line for line in said.out.splitlines() if line.startswith("  ") and line.endswith("...")]
    assert say(*words, "-h") == said


def test_the_list_of_commands_has_a_line_each_in_the_order_of_the_page() -> None:
    """Groups such as explain stand where they belong, and no summary folds."""
    listed = say("--help").out.partition("\nCommands:\n")[2].splitlines()

    assert [line.split()[0] for line in listed] == list(VERBS)


def test_the_list_of_commands_has_the_first_line_of_the_help_of_each() -> None:
    """It is stored with the names, so that the list is printed without any command's module."""
    for name, (_, summary) in VERBS.items():
        entry = load(name)
        assert (entry.name, entry.summary if isinstance(entry, Verb) else entry.help) == (name, summary)


@pytest.mark.parametrize("words", PATHS)
def test_every_flag_and_command_has_help(words: tuple[str, ...]) -> None:
    """In one or more lines, of which each begins with a capital letter."""
    lines = iter(say(*words, "--help").out.partition("\n\n  ")[2].splitlines())
    for line in lines:
        if not line.startswith("  -"):
            continue
        spelled, _, purpose = line.strip().partition("  ")
        purpose = purpose.strip() or next(lines).strip()
        assert purpose[:1].isupper(), spelled


@pytest.mark.parametrize("words", [words for words, verb in paths() if verb is None])
def test_a_group_without_a_verb_prints_its_help(words: tuple[str, ...]) -> None:
    """On stdout, as kubectl does."""
    said = say(*words)

    assert said.code == 0
    assert said == say(*words, "--help")


def test_the_plugin_of_kubectl_names_itself() -> None:
    """Usage lines are to be typed as they are."""
    from click.testing import CliRunner  # noqa: PLC0415 - here for prog_name alone

    from plimsoll.commands.program import app  # noqa: PLC0415 - likewise

    said = CliRunner().invoke(app, ["approve", "--help"], prog_name="kubectl-plimsoll")
    assert said.stdout.startswith("Usage: kubectl plimsoll approve [OPTIONS]")


@pytest.mark.parametrize("words", [("--version",), ("version",)])
def test_the_version_is_printed(words: tuple[str, ...]) -> None:
    """By a flag, as programs have it, and by a verb, as kubectl has it."""
    assert say(*words).out == f"{__version__}\n"
