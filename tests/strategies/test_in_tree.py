"""Every file of the folder is in the table, under its upstream name."""

import re
from pathlib import Path

import plimsoll.strategies
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.strategies import EVICTORS, IN_TREE


def test_every_file_is_registered_under_its_name() -> None:
    """remove_duplicates.py holds RemoveDuplicates, which the table lists; nothing else is in the folder."""
    folder = Path(plimsoll.strategies.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}

    named = {re.sub(r"(?<!^)(?=[A-Z])", "_", each.name).lower() for each in (*IN_TREE, *EVICTORS)}  # type: ignore[attr-defined] # known to exist in this test

    assert {each.__module__.rpartition(".")[2] for each in (*IN_TREE, *EVICTORS)} == files
    assert named == files


def test_the_registries_accept_what_is_in_tree() -> None:
    """Each has its members, and a kind."""
    assert list(StrategyRegistry(IN_TREE)) == [each.name for each in IN_TREE]
    assert list(EvictorRegistry(EVICTORS)) == ["DefaultEvictor"]
    assert all(each.kind in StrategyKind for each in IN_TREE)
