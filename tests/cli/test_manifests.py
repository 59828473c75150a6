"""Files that users name with -f: YAML or JSON, one object or many, and files without an object."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from plimsoll.cli.errors import UserError
from plimsoll.cli.manifests import LONGEST, manifests


def test_documents_and_lists_are_read_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: 1\n---\n---\nkind: PodList\nitems: [{b: 1}, {b: 2}]\n")
    assert [(each.number, each.content) for each in manifests(file)] == [
        (1, {"a": 1}),
        (3, {"b": 1}),
        (3, {"b": 2}),
    ]


def test_a_dash_is_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"a": 1}')))
    assert [each.source for each in manifests(Path("-"))] == ["stdin"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "has no object"),
        (b"a: [", "is not YAML: "),
        (b"- a", "document 1: expected an object, got list"),
        (b"\xff\xfe\x00", "is not text in UTF-8"),
        (b"[" * 100_000, "is not YAML: "),
        (b" " * (LONGEST + 1), "is too long"),
    ],
)
def test_what_is_no_manifest_is_said_so(content: bytes, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        manifests(file)
    assert str(caught.value).startswith(str(file))
    assert problem in str(caught.value)
