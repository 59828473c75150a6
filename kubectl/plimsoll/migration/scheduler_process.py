"""Reports the outcome of the fields of a KubeSchedulerConfiguration that are about the process."""

from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.migration.report import FieldChange, Note, dropped

RUN = "plimsoll run"

#: Flags of ``plimsoll run``, by path.
FLAGS: Mapping[tuple[str, ...], str] = {
    ("leaderElection", "leaderElect"): "--leader-elect",
    ("leaderElection", "leaseDuration"): "--leader-elect-lease-duration",
    ("leaderElection", "renewDeadline"): "--leader-elect-renew-deadline",
    ("leaderElection", "retryPeriod"): "--leader-elect-retry-period",
    ("clientConnection", "kubeconfig"): "--kubeconfig",
    ("healthzBindAddress",): "--health-port",
    ("metricsBindAddress",): "--metrics-port",
}

#: Fields without a counterpart, with the reason.
ABSENT: Mapping[tuple[str, ...], str] = {
    ("parallelism",): "Nodes are filtered and scored with arrays, not by workers.",
    ("percentageOfNodesToScore",): "All feasible nodes are scored.",
    ("leaderElection", "resourceLock"): "The lock is a Lease.",
    ("leaderElection", "resourceName"): "The lease is the operator's own, not kube-scheduler's.",
    ("leaderElection", "resourceNamespace"): "The lease is in the operator's namespace.",
    ("clientConnection", "qps"): "The operator has limits of its own for requests.",
    ("clientConnection", "burst"): "The operator has limits of its own for requests.",
    ("clientConnection", "contentType"): "The operator speaks JSON.",
    ("clientConnection", "acceptContentTypes"): "The operator speaks JSON.",
    ("enableProfiling",): "There are no profiling endpoints.",
    ("enableContentionProfiling",): "There are no profiling endpoints.",
    ("delayCacheUntilActive",): "A standby always watches, so that it can take over immediately.",
}

#: Back-off times of pods in seconds, which are fixed here, by field.
BACKOFFS = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 10}


def process_notes(document: Mapping[str, Any]) -> Iterator[Note]:
    """A note for each such field of the document."""
    for path, flag in FLAGS.items():
        value = _at(document, path)
        if value is not None:
            yield Note(
                FieldChange.RENAMED, path, f"{RUN} {flag}", f"A flag of {RUN}, not a field of a policy."
            )
    for path, sentence in ABSENT.items():
        if _at(document, path) is not None:
            yield dropped(path, sentence)
    for field, seconds in BACKOFFS.items():
        value = document.get(field)
        if value == seconds:
            yield Note(FieldChange.KEPT, (field,), "", f"{seconds} s is what pods back off here, too.")
        elif value is not None:
            yield dropped((field,), f"The back-off is fixed at {seconds} s, not {value} s.")


def _at(document: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = document
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
