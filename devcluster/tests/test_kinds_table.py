"""The tables of kinds and controllers say what the code does."""

from pathlib import Path

import pytest

from kinds_table import BLOCK, PAGES, UPSTREAM_CONTROLLERS, table
from roadstead.controllers import ACTS_ON, CONTROLLERS, chosen


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_are_current(page: Path) -> None:
    """``python devcluster/tests/kinds_table.py`` writes them."""
    (found,) = BLOCK.findall(page.read_text(encoding="utf-8"))

    assert found == table()


def test_controllers_have_the_names_of_kube_controller_manager() -> None:
    assert set(CONTROLLERS) <= set(UPSTREAM_CONTROLLERS)
    assert set(ACTS_ON) == set(CONTROLLERS)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("*", list(CONTROLLERS)),
        ("", []),
        ("job,namespace-controller", ["namespace-controller", "job-controller"]),
        (
            "*,-job-controller, -deployment",
            [name for name in CONTROLLERS if name not in ("job-controller", "deployment-controller")],
        ),
        ("-job", []),
    ],
)
def test_a_list_selects_controllers(names: str, expected: list[str]) -> None:
    assert chosen(names) == expected


def test_an_unknown_controller_is_named() -> None:
    with pytest.raises(ValueError, match='"jobs" is not in the list of known controllers'):
        chosen("*,-jobs")
