"""Exactly as much as is allowed, and the place where a document begins."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest

from plimsoll.snapshots import file
from plimsoll.snapshots.errors import SnapshotError
from plimsoll.snapshots.reader import read
from snapshots.test_file import lines_of


@pytest.mark.parametrize(("spare", "is_read"), [(0, True), (1, True), (-1, False)])
def test_a_snapshot_of_exactly_the_largest_size_is_read(spare: int, is_read: bool) -> None:
    content = b"".join(lines_of())

    if is_read:
        assert file.read(BytesIO(content), "f", largest=len(content) + spare).objects
        return
    with pytest.raises(SnapshotError, match="holds more than"):
        file.read(BytesIO(content), "f", largest=len(content) + spare)


@pytest.mark.parametrize("blanks", [0, 1, 1022, 1023])
def test_a_document_may_begin_after_blanks(blanks: int, tmp_path: Path) -> None:
    """Within the first KiB."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    (tmp_path / "f.json").write_text(" " * blanks + json.dumps(node))

    assert len(read([tmp_path / "f.json"]).objects["nodes"]) == 1


def test_a_file_of_blanks_alone_is_empty(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text("\n \n")

    with pytest.raises(SnapshotError, match="it is empty"):
        read([tmp_path / "f.json"])
