"""Exactly as much as is allowed, the place where a document begins, and rows without a class."""

from __future__ import annotations

import gzip
import json
from io import BytesIO
from pathlib import Path

import pytest

from plimsoll.snapshots import file
from plimsoll.snapshots.errors import SnapshotError
from plimsoll.snapshots.reader import read
from snapshots.test_file import lines_of

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,1024,0,\n"
TRACE = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,1000,1024,0,0,,,Running,10,100,40\n"
    "p1,1000,1024,0,0,,LS,Running,20,100,40\n"
)


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


def test_a_pod_of_a_trace_without_a_class_has_no_priority(tmp_path: Path) -> None:
    (tmp_path / "openb_node_list_all_node.csv.gz").write_bytes(gzip.compress(NODES.encode()))
    (tmp_path / "openb_pod_list_default.csv.gz").write_bytes(gzip.compress(TRACE.encode()))

    pods = [json.loads(each) for each in read([tmp_path]).objects["pods"]]

    assert pods[0]["spec"]["priority"] == 0
    assert pods[1]["spec"]["priority"] > 0
