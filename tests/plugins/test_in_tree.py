"""The table of plugins, compared with the folder and with the default profile."""

import re
from pathlib import Path

import plimsoll.plugins
from plimsoll.framework import Registry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE

FOLDER = Path(plimsoll.plugins.__file__).parent


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def test_every_file_of_the_folder_is_in_the_table() -> None:
    """One plugin, one file, one line in the table."""
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}

    assert {snake(plugin.name) for plugin in IN_TREE} == files


def test_every_plugin_enters_the_registry() -> None:
    """Names are unique and each class implements an extension point."""
    assert set(Registry(IN_TREE)) == {plugin.name for plugin in IN_TREE}


def test_every_plugin_says_what_it_computes() -> None:
    """Each module docstring has the five headings that the plugin pages are made from."""
    for plugin in IN_TREE:
        text = __import__(plugin.__module__, fromlist=["_"]).__doc__

        assert text.startswith(f"{plugin.name}: ")
        assert [
            head
            for head in ("Formula", "Units:", "Edges:", "Source:", "Differs:")
            if f"\n{head}" not in text  # type: ignore[operator] # known to exist in this test
        ] == []


def test_every_plugin_is_part_of_the_default_profile() -> None:
    """What is in the tree is what kube-scheduler's default profile names, and what a policy may ask for."""
    assert {plugin.name for plugin in IN_TREE} - set(DEFAULT_PLUGINS) == {
        "FairShare",
        "NodeLoad",
        "PackUnmovable",
    }
