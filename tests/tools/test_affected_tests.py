"""``make quick`` runs the tests that a change concerns, nearest first."""

from typing import Any

import pytest

from affected_tests import affected, module_of
from coverage_map import Measured

TREE = {
    "operator/house/__init__.py": "",
    "operator/house/roof.py": "import house.tile",
    "operator/house/tile.py": "",
    "operator/house/door.py": "from house import (\n    roof,\n)",
    "operator/house/fence.py": "",
    "deploy/paint.yaml": "",
    "docs/tiles.md": "",
    "tests/scene.py": "from house.door import handle",
    "tests/house/conftest.py": "import house.fence",
    "tests/house/test_tile.py": "from house.tile import Tile",
    "tests/house/test_door.py": "from scene import something",
    "tests/test_fence.py": "from house import fence",
    "tests/test_paint.py": "PATH = 'deploy/paint.yaml'",
    "tests/docs/test_pages.py": "PAGES = 'docs'",
    "tests/structure/test_rooms.py": "ROOMS = 'operator'",
    "tests/test_tiling.py": "PAGE = 'tiles.md'",
    "tests/e2e/test_all.py": "from house.tile import Tile",
    "conftest.py": "",
}


@pytest.fixture
def tree(tmp_path: Any) -> Any:
    for path, text in TREE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param((), [], id="nothing"),
        pytest.param(
            ["operator/house/tile.py"],
            ["tests/house/test_tile.py", "tests/structure/test_rooms.py", "tests/house/test_door.py"],
            id="nearest first",
        ),
        pytest.param(
            ["operator/house/fence.py"],
            [
                "tests/structure/test_rooms.py",
                "tests/test_fence.py",
                "tests/house/test_door.py",
                "tests/house/test_tile.py",
            ],
            id="a folder with its conftest",
        ),
        pytest.param(["deploy/paint.yaml"], ["tests/test_paint.py"], id="a file that a test names"),
        pytest.param(
            ["docs/tiles.md"],
            ["docs/tiles.md", "tests/test_tiling.py", "tests/docs/test_pages.py"],
            id="a document, which is executed",
        ),
        pytest.param(["tests/e2e/test_all.py"], ["tests/e2e/test_all.py"], id="a slow test itself"),
        pytest.param(
            ["conftest.py"],
            [
                "tests/docs/test_pages.py",
                "tests/house/test_door.py",
                "tests/house/test_tile.py",
                "tests/structure/test_rooms.py",
                "tests/test_fence.py",
                "tests/test_paint.py",
                "tests/test_tiling.py",
            ],
            id="what concerns every test",
        ),
    ],
)
def test_a_change_concerns_what_imports_it(tree: Any, changed: Any, expected: Any) -> None:
    """Through modules, documents and data that name it; end-to-end tests only when they change."""
    assert affected(TREE, changed, tree) == expected


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("client/plimsoll/api/__init__.py", "plimsoll.api"),
        ("devcluster/src/roadstead/cluster.py", "roadstead.cluster"),
        ("tests/e2e/scene.py", "e2e.scene"),
        ("conftest.py", "conftest"),
    ],
)
def test_a_file_is_imported_by_its_name_below_its_source(path: Any, name: Any) -> None:
    assert module_of(path) == name


ROOF = "def shut():\n    if open():\n        close()\n    rest()\n"


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(
            ROOF.replace("close()", "slam()"), ["tests/test_paint.py"], id="a line that is another one"
        ),
        pytest.param(ROOF.replace("    rest()\n", ""), ["tests/e2e/test_all.py"], id="a line that is gone"),
        pytest.param(
            ROOF.replace("    rest", "    wait()\n    rest"),
            ["tests/test_paint.py", "tests/e2e/test_all.py"],
            id="a new line, by its neighbours",
        ),
        pytest.param(f"{ROOF}\n\nX = 1\n", ["tests/e2e/test_all.py"], id="a new line at the end"),
        pytest.param(ROOF.replace("open()", "ajar()"), [], id="a line that no test covered"),
        pytest.param(ROOF, [], id="no change since"),
    ],
)
def test_tests_that_covered_a_changed_line_come_first(tree: Any, now: Any, expected: Any) -> None:
    """Those that start processes only where no other test covered it."""
    path = "operator/house/roof.py"
    (tree / path).write_text(now)
    both = frozenset({"tests/test_paint.py", "tests/e2e/test_paint.py", "tests/e2e/test_all.py"})
    alone = frozenset({"tests/e2e/test_all.py", "tests/gone/test_it.py"})

    found = affected(TREE, [path], tree, {path: Measured(ROOF, {3: both, 4: alone})})

    assert found == [*expected, "tests/structure/test_rooms.py", "tests/house/test_door.py"]
