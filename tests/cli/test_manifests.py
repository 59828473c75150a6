"""Files that users name with -f: YAML or JSON, one object or many, and files without an object."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from plimsoll.cli.manifests import LONGEST, manifests
from plimsoll.commands.errors import UserError

#: Each level repeats the one above nine times.
LAUGHS = b"a0: &a0 [x]\n" + b"".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n".encode() for level in range(1, 10)
)


def test_documents_and_lists_are_read_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: 1\n---\n---\nkind: PodList\nitems: [{b: 1}, {b: 2}]\n")
    assert [(each.number, each.content) for each in manifests([file])] == [
        (1, {"a": 1}),
        (3, {"b": 1}),
        (3, {"b": 2}),
    ]


def test_a_dash_is_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"a": 1}')))
    assert [each.source for each in manifests([Path("-")])] == ["stdin"]


def test_manifests_of_a_folder_are_read_in_order(tmp_path: Path) -> None:
    """That of their names; a folder without any is an error."""
    for name in ("b.json", "a.yml", "c.yaml"):
        (tmp_path / name).write_text('{"a": 1}')
    (tmp_path / "notes.txt").write_text("- a")
    (tmp_path / "empty.yaml").mkdir()

    found = manifests([tmp_path, tmp_path / "b.json"])
    assert [Path(each.source).name for each in found] == ["a.yml", "b.json", "c.yaml", "b.json"]
    with pytest.raises(UserError, match=r"empty\.yaml: the folder has no file that ends with \.yaml"):
        manifests([tmp_path / "empty.yaml"])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "has no object"),
        (b"a: [", "is not YAML at line "),
        (b"- a", "document 1: expected an object, got list"),
        (b"\xff\xfe\x00", "is not text in UTF-8"),
        (b"[" * 100_000, "is not YAML: it is nested more than 100 levels deep"),
        (b"a: &a {<<: *a}", "is not YAML: the alias *a is part of what it repeats"),
        (LAUGHS, "is not YAML: its aliases repeat more than 64 MiB"),
        (b"a: 2026-99-99", "is not YAML: month must be in 1..12"),
        (b" " * (LONGEST + 1), "is too long"),
    ],
)
def test_what_is_no_manifest_is_said_so(content: bytes, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        manifests([file])
    assert str(caught.value).startswith(str(file))
    assert problem in str(caught.value)
