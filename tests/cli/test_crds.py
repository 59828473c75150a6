"""``plimsoll crds``: the definitions of the tree, and the example policies."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cli.commands import say

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("options", "folder"), [((), "crds"), (("--examples",), "examples")])
def test_files_are_printed_and_written(options: tuple[str, ...], folder: str, tmp_path: Path) -> None:
    """As one stream for kubectl, or as the files that a checkout has."""
    there = {file.name: file.read_text() for file in sorted((ROOT / folder).glob("*.yaml"))}

    assert sorted(_names(say("crds", *options).out)) == sorted(
        name for text in there.values() for name in _names(text)
    )
    said = say("crds", *options, "-d", str(tmp_path / "new"))
    assert sorted(said.out.split()) == [str(tmp_path / "new" / name) for name in there]
    assert {file.name: file.read_text() for file in (tmp_path / "new").iterdir()} == there


def _names(text: str) -> list[str]:
    return [document["metadata"]["name"] for document in yaml.safe_load_all(text)]


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    said = say("crds", "-d", str(file))
    assert said.code == 1
    assert said.err.startswith("error: Invalid value for '--directory'")


def test_the_demo_says_what_to_install() -> None:
    """The operator's wheel brings neither the demo nor the development cluster."""
    said = say("demo")
    assert (said.code, said.err) == (
        1,
        "error: the demo is not installed; it comes with the wheels plimsoll_demo and roadstead\n",
    )
