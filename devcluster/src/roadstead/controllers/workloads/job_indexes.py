"""Computes completion indexes of indexed Jobs.

Source: kubernetes v1.36 ``pkg/controller/job/indexed_job_utils.go``.
"""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING

from roadstead.controllers.pod_state import is_active

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roadstead.values.resources import Obj

INDEX = "batch.kubernetes.io/job-completion-index"


def is_indexed(job: Obj) -> bool:
    """Whether a Job's pods have indexes."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def parsed(text: str) -> set[int]:
    """The numbers in a text like "0-2,5"."""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def written(numbers: Iterable[int]) -> str:
    """Numbers as a text like "0-2,5"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def with_completed(job: Obj, text: str, pods: Iterable[Obj]) -> str:
    """The completed indexes together with those of further succeeded pods."""
    completions: int = job["spec"]["completions"]
    more = {index for pod in pods if (index := index_of(pod)) is not None and index < completions}
    return written(parsed(text) | more)


def index_of(pod: Obj) -> int | None:
    """A pod's index."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdecimal() else None


def free(job: Obj, completed: str, pods: Iterable[Obj], wanted: int) -> list[int]:
    """The lowest indexes that are neither completed nor active."""
    taken = parsed(completed) | {index_of(pod) for pod in pods if is_active(pod)}
    numbers = (number for number in count() if number not in taken)
    below = (number for number in islice(numbers, wanted) if number < job["spec"]["completions"])
    return list(below)


def mark(pod: Obj, job: Obj, index: int) -> None:
    """Set the index of a new pod: annotation, label, name, host name and environment."""
    metadata, spec = pod["metadata"], pod["spec"]
    metadata.setdefault("annotations", {})[INDEX] = str(index)
    metadata["labels"][INDEX] = str(index)
    metadata["generateName"] = f"{job['metadata']['name']}-{index}-"
    spec["hostname"] = f"{job['metadata']['name']}-{index}"
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    for container in [*spec.get("initContainers", ()), *spec["containers"]]:
        variables = container.setdefault("env", [])
        if all(one["name"] != "JOB_COMPLETION_INDEX" for one in variables):
            variables.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
