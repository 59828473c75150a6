"""Reads traces of real clusters as objects: OpenB (nodes and pods) and Azure VM arrivals (pods only).

A row of a node list becomes a Node; a row of a pod list, or a VM, becomes a Pod with requests of its size.
Pods are pending and created at their arrival, counted from ``EPOCH``; an annotation has the run time of each.
Pods of one shape, or of one batch, have one owner. Plimsoll contains neither the traces nor objects made from
them.

Source: https://github.com/hkust-adsl/kubernetes-scheduler-simulator (``data/csv``);
https://github.com/huaweicloud/trace_generation_rnn (``resources``).
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from plimsoll.snapshots.errors import SnapshotError
from plimsoll.snapshots.saved_fields import DURATION

#: Start of every trace, in seconds since the epoch: 2026-01-01T00:00:00Z.
EPOCH = 1_767_225_600.0

#: Receives an object: its plural and JSON.
Put = Callable[[str, bytes], None]

_NODE_LIST, _POD_LISTS, _POD_LIST = "openb_node_list_all_node.csv.gz", "openb_pod_list_", "default.csv.gz"
_FLAVOURS, _LIFETIMES, _ARRIVALS = "flav_map.txt", "v1.interval_map.txt.gz", "v1.dev.txt.gz"
_NAMESPACE = "trace"
_GPU, _MODEL = "plimsoll.dev/gpu-milli", "gpu.model"
_PRIORITIES = {"LS": 1000, "Guaranteed": 500, "Burstable": 500, "BE": 0}
_MOST_PODS_ON_NODE = "110"


def add(path: Path, put: Put) -> bool:
    """Put the objects of a trace, given its folder or a list in it; returns whether it is a trace.

    Raises:
        SnapshotError: A list does not have the described format.
    """
    adder = _adder_of(path)
    if adder is None:
        return False
    try:
        adder(put)
    except (KeyError, ValueError, TypeError) as exc:
        raise SnapshotError(str(path), f"the trace is not as described: {exc!r}") from exc
    return True


def _adder_of(path: Path) -> Callable[[Put], None] | None:
    """The function that puts a trace's objects, given its folder or a list in it; None without a trace.

    The function raises SnapshotError if a file does not have the described format.
    """
    folder = path if path.is_dir() else path.parent
    if path.is_dir() and (path / _NODE_LIST).is_file():
        return lambda put: _add_openb(folder, folder / f"{_POD_LISTS}{_POD_LIST}", put)
    if path.name.startswith(_POD_LISTS) and path.is_file():
        return lambda put: _add_openb(folder, path, put)
    if path.is_dir() and (path / _FLAVOURS).is_file():
        return lambda put: _add_azure(folder, folder / _ARRIVALS, put)
    if path.name.startswith("v1.") and path.name.count(".") == 3 and (folder / _FLAVOURS).is_file():
        return lambda put: _add_azure(folder, path, put)
    return None


def _add_openb(folder: Path, pods: Path, put: Put) -> None:
    for row in _rows(folder / _NODE_LIST):
        put("nodes", _openb_node(row))
    owners: dict[tuple[Any, ...], int] = {}
    for row in _rows(pods):
        gpus = int(row["num_gpu"] or 0) * int(row.get("gpu_milli") or 0)
        models = tuple(sorted(set(filter(None, (row.get("gpu_spec") or "").split("|")))))
        shape = (row["cpu_milli"], row["memory_mib"], gpus, models, row.get("qos") or "")
        owner = owners.setdefault(shape, len(owners))
        requests = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
        if gpus:
            requests[_GPU] = str(gpus)
        spec: dict[str, Any] = {"priority": _PRIORITIES.get(row.get("qos") or "", 0)}
        if models:
            term = {"matchExpressions": [{"key": _MODEL, "operator": "In", "values": models}]}
            required = {"nodeSelectorTerms": [term]}
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        arrival = float(row.get("creation_time") or 0)
        ended = row.get("deletion_time")
        ran = float(ended) - float(row.get("scheduled_time") or arrival) if ended else None
        put("pods", _pod(row["name"], f"w{owner:04}", requests, arrival, ran, spec))


def _openb_node(row: Mapping[str, str]) -> bytes:
    name = row["sn"]
    amounts = {
        "cpu": f"{row['cpu_milli']}m",
        "memory": f"{row['memory_mib']}Mi",
        "pods": _MOST_PODS_ON_NODE,
    }
    if int(row["gpu"]):
        amounts[_GPU] = str(int(row["gpu"]) * 1000)
    labels = {"kubernetes.io/hostname": name}
    if row["model"]:
        labels[_MODEL] = row["model"]
    node = {
        "metadata": {"name": name, "uid": f"node-{name}", "labels": labels},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return msgspec.json.encode(node)


def _add_azure(folder: Path, arrivals: Path, put: Put) -> None:
    sizes = {
        letter: size.split(",") for size, letter in (line.split() for line in _lines(folder / _FLAVOURS))
    }
    seconds: dict[str, list[int]] = {}
    for line in _lines(folder / _LIFETIMES):
        start, interval = line.split()
        seconds.setdefault(interval, []).append(int(start))
    mean = {interval: sum(each) / len(each) for interval, each in seconds.items()}
    first, batch, number = None, 0, 0
    for arrived, ended in zip(_lines(arrivals), _lines(_durations_of(arrivals)), strict=True):
        at, _, tokens = arrived.partition(" ")
        first = int(at) if first is None else first
        for flavour, lifetime in zip(tokens.split(","), ended.partition(" ")[2].split(","), strict=True):
            if flavour == "|":
                batch += 1
                continue
            cores, gib = sizes[flavour]
            requests = {"cpu": cores, "memory": f"{int(float(gib) * 1024)}Mi"}
            ran = mean[lifetime[1:]] if lifetime.startswith("U") else None
            put("pods", _pod(f"vm-{number:06}", f"batch-{batch}", requests, float(int(at) - first), ran, {}))
            number += 1


def _durations_of(arrivals: Path) -> Path:
    """The lifetimes of ``v1.dev.txt.gz`` are in ``v1.dev.c….txt.gz``."""
    stem = arrivals.name.removesuffix(".txt.gz")
    found = sorted(arrivals.parent.glob(f"{stem}.c*.txt.gz"))
    if not found:
        raise SnapshotError(
            str(arrivals), f"there is no file {stem}.c….txt.gz of its lifetimes in its folder"
        )
    return found[0]


def _pod(
    name: str, owner: str, requests: Mapping[str, str], at: float, ran: float | None, spec: Mapping[str, Any]
) -> bytes:
    metadata = {
        "name": name,
        "namespace": _NAMESPACE,
        "uid": f"pod-{name}",
        "labels": {"app": owner},
        "creationTimestamp": datetime.fromtimestamp(EPOCH + at, UTC).isoformat(),
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": owner,
                "uid": f"owner-{owner}",
                "controller": True,
            }
        ],
        "annotations": {} if ran is None else {DURATION: f"{ran:g}"},
    }
    container = {"name": "main", "resources": {"requests": dict(requests)}}
    pod = {"metadata": metadata, "spec": {"containers": [container], **spec}, "status": {"phase": "Pending"}}
    return msgspec.json.encode(pod)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    reader = csv.DictReader(_lines(path))
    try:
        yield from reader
    except csv.Error as exc:
        raise SnapshotError(str(path), f"line {reader.line_num} is no line of a table: {exc}") from exc


def _lines(path: Path) -> Iterator[str]:
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as lines:
            for line in lines:
                yield line.rstrip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as exc:
        raise SnapshotError(str(path), f"it cannot be read as a list of the trace: {exc}") from exc
