"""Things that tests build once are built again as soon as anything that went in has changed."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from built_once import built_once, sources, tools, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Sources and the program that builds them."""
    folder = tmp_path / "project"
    write(
        {
            "src/one.py": b"-one",
            "src/run": b"xrun",
            "src/link": b"lone.py",
            "tool": b"xtool",
            "lib/a-1.dist-info/RECORD": b"-",
        },
        folder,
    )
    return folder


def build(project: Path, kept: Path, name: str = "wheel") -> tuple[Path, bool]:
    """The folder, and whether it was built now."""
    parts = sources(project, ["src"]) | tools(project / "tool", project / "lib")
    built = []

    def copy(folder: Path) -> None:
        write(sources(project, ["src"]), folder)
        built.append(folder)

    return built_once(name, parts, copy, kept), bool(built)


def test_the_same_is_not_built_again(project: Path, tmp_path: Path) -> None:
    first, was_built = build(project, tmp_path / "kept")
    again, was_built_again = build(project, tmp_path / "kept")

    assert (first, was_built, was_built_again) == (again, True, False)
    assert sources(first, ["src"]) == sources(project, ["src"])


def _point(link: Path, target: str) -> None:
    link.unlink()
    link.symlink_to(target)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a byte": lambda project: (project / "src/one.py").write_text("two"),
    "a new file": lambda project: (project / "src/new.py").write_text(""),
    "a file that is gone": lambda project: (project / "src/one.py").unlink(),
    "a name": lambda project: (project / "src/one.py").rename(project / "src/two.py"),
    "rights": lambda project: (project / "src/run").chmod(0o644),
    "a link's target": lambda project: _point(project / "src/link", "run"),
    "a file's bytes moved to another": lambda project: (
        (project / "src/one.py").write_text("on"),
        (project / "src/onf.py").write_text("e"),
    ),
    "a program": lambda project: (project / "tool").write_text("another"),
    "a package": lambda project: write({"lib/b-1.dist-info/RECORD": b"-"}, project),
    "a package that was installed again": lambda project: os.utime(
        project / "lib/a-1.dist-info/RECORD", ns=(1, 1)
    ),
    "a program of the same size": lambda project: os.utime(project / "tool", ns=(1, 1)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_of_what_goes_in_builds_it_again(
    project: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    before, _ = build(project, tmp_path / "kept")
    change(project)

    after, was_built = build(project, tmp_path / "kept")

    assert was_built
    assert after != before


def test_bytecode_is_no_source(project: Path, tmp_path: Path) -> None:
    before, _ = build(project, tmp_path / "kept")
    write({"src/__pycache__/one.cpython-311.pyc": b"-"}, project)

    assert build(project, tmp_path / "kept") == (before, False)


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        folder.mkdir()
        (folder / "half").touch()
        raise RuntimeError("no compiler")

    with pytest.raises(RuntimeError):
        built_once("wheel", {}, fail, tmp_path)

    assert built_once("wheel", {}, lambda folder: folder.mkdir(), tmp_path).exists()
    assert [*tmp_path.rglob("half")] == []


def test_what_a_build_has_made_read_only_is_removed_when_it_is_old(project: Path, tmp_path: Path) -> None:
    def read_only(folder: Path) -> None:
        folder.mkdir()
        (folder / "file").touch()
        folder.chmod(0o555)

    folders = [built_once("image", {"n": bytes([n])}, read_only, tmp_path) for n in range(4)]

    assert [each.exists() for each in folders] == [False, False, True, True]


def test_two_simultaneous_users_build_it_once(tmp_path: Path) -> None:
    built = []

    def build_slowly(folder: Path) -> None:
        folder.mkdir()
        built.append(folder)

    def run() -> None:
        built_once("wheel", {}, build_slowly, tmp_path)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(built) == 1
