"""A snapshot of a running cluster: it keeps no secret, and answers as the cluster does."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from cli.commands import say

if TYPE_CHECKING:
    from pathlib import Path

    from roadstead.clients import RunningCluster

SECRET = "correct-horse-battery-staple"
SPACE = "saving"


def a_pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    """A pod with a secret wherever one may be."""
    container = {
        "name": "main",
        "image": "shop/web:1",
        "args": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}],
        "resources": {"requests": {"cpu": cpu}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SPACE, "annotations": {"example.com/token": SECRET}},
        "spec": {"containers": [container], **spec},
    }


def test_what_is_saved_explains_a_pod_as_the_cluster_does(
    roadstead_process: RunningCluster, tmp_path: Path
) -> None:
    """Saved, read again, asked the same: the same answer, and no secret on the way."""
    live = ("--kubeconfig", str(roadstead_process.kubeconfig))
    room = {"cpu": "2", "memory": "4Gi", "pods": "20"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "saved-node"}, "spec": {}}
    roadstead_process.apply({**node, "status": {"allocatable": room, "capacity": room}})
    roadstead_process.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    roadstead_process.apply(a_pod("placed", "1500m", nodeName="saved-node"))
    roadstead_process.apply(a_pod("waiting", "1", nodeSelector={"kubernetes.io/hostname": "no-such-node"}))
    file = tmp_path / "cluster.json.gz"

    saved = say("snapshot", "save", str(file), *live)
    asked = ("explain", "pod", f"{SPACE}/waiting", "-o", "json")
    answers = [say(*asked, *where) for where in (live, ("--from", str(file)))]

    roadstead_process.delete(f"namespaces/{SPACE}")
    roadstead_process.delete("nodes/saved-node")
    assert saved.code == 0, saved.err
    content = gzip.decompress(file.read_bytes())
    assert SECRET.encode() not in content
    assert b'"placed"' in content
    assert [each.code for each in answers] == [0, 0], answers
    first, second = (json.loads(each.out) for each in answers)
    assert first["pending"]
    assert first["pending"] == second["pending"]
