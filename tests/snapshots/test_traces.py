"""Traces as objects, from folders in the form of OpenB and of the Azure VM arrivals."""

import gzip
import json
from pathlib import Path

import pytest

from plimsoll.snapshots.errors import SnapshotError
from plimsoll.snapshots.reader import read
from plimsoll.snapshots.saved_fields import DURATION
from plimsoll.snapshots.traces import EPOCH

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,1024,8,G2\nn1,32000,2048,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,12000,16384,1,460,T4|G2|G2,LS,Running,10,100,40\n"
    "p1,12000,16384,0,0,,BE,Pending,20,,\n"
)


def test_openb(tmp_path: Path) -> None:
    """GPUs in thousandths, models as affinity, arrival and run time of each pod."""
    (tmp_path / "openb_node_list_all_node.csv.gz").write_bytes(gzip.compress(NODES.encode()))
    (tmp_path / "openb_pod_list_default.csv.gz").write_bytes(gzip.compress(PODS.encode()))

    content = read([tmp_path])

    nodes = [json.loads(each) for each in content.objects["nodes"]]
    first, second = (json.loads(each) for each in content.objects["pods"])
    assert content.taken == EPOCH
    assert nodes[0]["status"]["allocatable"]["plimsoll.dev/gpu-milli"] == "8000"
    assert nodes[1]["status"]["allocatable"] == {"cpu": "32000m", "memory": "2048Mi", "pods": "110"}
    assert first["spec"]["containers"][0]["resources"]["requests"]["plimsoll.dev/gpu-milli"] == "460"
    assert first["metadata"]["creationTimestamp"] == "2026-01-01T00:00:10+00:00"
    assert first["metadata"]["annotations"] == {DURATION: "60"}
    assert '["G2","T4"]' in json.dumps(first["spec"]["affinity"], separators=(",", ":"))
    assert second["metadata"]["annotations"] == {}


def test_azure_with_nodes_from_a_dump(tmp_path: Path) -> None:
    """Flavours as requests, batches as owners; the trace has no nodes."""
    (tmp_path / "flav_map.txt").write_text("1,1.75 b\n2,3.5 g\n")
    for name, text in {
        "v1.interval_map.txt.gz": "0 0\n300 1\n600 1\n",
        "v1.dev.txt.gz": "1800000 b,b,|,g\n1800300 g,|\n",
        "v1.dev.c2100000.txt.gz": "1800000 U1,C1,|,U0\n1800300 U0,|\n",
    }.items():
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}))

    content = read([tmp_path, nodes])

    pods = [json.loads(each) for each in content.objects["pods"]]
    assert len(content.objects["nodes"]) == 1
    assert [each["metadata"]["labels"]["app"] for each in pods] == [
        "batch-0",
        "batch-0",
        "batch-1",
        "batch-1",
    ]
    assert [each["metadata"]["annotations"].get(DURATION) for each in pods] == ["450", None, "0", "0"]
    assert pods[3]["metadata"]["creationTimestamp"] == "2026-01-01T00:05:00+00:00"


def test_a_trace_that_is_not_as_described_is_named(tmp_path: Path) -> None:
    """A column is missing; a list is no gzip."""
    nodes = tmp_path / "openb_node_list_all_node.csv.gz"
    nodes.write_bytes(gzip.compress(b"sn,cpu\nn0,1\n"))

    with pytest.raises(SnapshotError, match="not as described"):
        read([tmp_path])

    nodes.write_bytes(b"plain")
    with pytest.raises(SnapshotError, match="as a list of the trace"):
        read([tmp_path])
