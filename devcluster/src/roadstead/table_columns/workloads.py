"""Defines columns of workloads and of PodDisruptionBudgets.

Source: kubernetes v1.36 ``pkg/printers/internalversion/printers.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.schemas.formats import instant
from roadstead.table_columns.columns import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    SELECTOR,
    UNKNOWN,
    Column,
    at,
    field,
    human_duration,
    labels,
    since,
    wide,
)

if TYPE_CHECKING:
    import datetime as dt

    from roadstead.values.resources import Obj


def _count(name: str, *steps: str) -> Column:
    return Column(name, field(*steps, default=0), type="integer")


def _ready(obj: Obj, _now: dt.datetime) -> str:
    wanted = at(obj, "spec", "replicas", default=0)
    return f"{at(obj, 'status', 'readyReplicas', default=0)}/{wanted}"


DEPLOYMENTS = (
    NAME,
    Column("Ready", _ready),
    Column("Up-to-date", field("status", "updatedReplicas", default=0)),
    Column("Available", field("status", "availableReplicas", default=0)),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
REPLICA_SETS = (
    NAME,
    _count("Desired", "spec", "replicas"),
    _count("Current", "status", "replicas"),
    _count("Ready", "status", "readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
REPLICATION_CONTROLLERS = (
    *REPLICA_SETS[:-1],
    wide("Selector", lambda obj, _: labels(at(obj, "spec", "selector"))),
)
STATEFUL_SETS = (NAME, Column("Ready", _ready), AGE, CONTAINERS, IMAGES)
DAEMON_SETS = (
    NAME,
    _count("Desired", "status", "desiredNumberScheduled"),
    _count("Current", "status", "currentNumberScheduled"),
    _count("Ready", "status", "numberReady"),
    _count("Up-to-date", "status", "updatedNumberScheduled"),
    _count("Available", "status", "numberAvailable"),
    Column("Node Selector", lambda obj, _: labels(at(obj, "spec", "template", "spec", "nodeSelector"))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)


def _job_status(job: Obj, _now: dt.datetime) -> str:
    held = {one["type"] for one in at(job, "status", "conditions", default=[]) if one["status"] == "True"}
    for kind in ("Complete", "Failed"):
        if kind in held:
            return kind
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in held:
            return kind
    return "Running"


def _completions(job: Obj, _now: dt.datetime) -> str:
    done = at(job, "status", "succeeded", default=0)
    wanted = at(job, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = at(job, "spec", "parallelism", default=0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(job: Obj, now: dt.datetime) -> str:
    started = instant(at(job, "status", "startTime", default=""))
    if started is None:
        return ""
    ended = instant(at(job, "status", "completionTime", default="")) or now
    return human_duration((ended - started).total_seconds())


JOBS = (
    NAME,
    Column("Status", _job_status),
    Column("Completions", _completions),
    Column("Duration", _job_duration),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)


def _last_schedule(job: Obj, now: dt.datetime) -> str:
    last = at(job, "status", "lastScheduleTime")
    return since(last, now) if last else NONE


CRON_JOBS = (
    NAME,
    Column("Schedule", field("spec", "schedule")),
    Column("Timezone", field("spec", "timeZone", default=NONE)),
    Column("Suspend", lambda job, _: "True" if at(job, "spec", "suspend") else "False"),
    Column("Active", lambda job, _: len(at(job, "status", "active", default=[])), type="integer"),
    Column("Last Schedule", _last_schedule),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)


def _amount(name: str) -> Column:
    title = "Min Available" if name == "minAvailable" else "Max Unavailable"
    return Column(title, lambda budget, _: str(at(budget, "spec", name, default="N/A")))


BUDGETS = (
    NAME,
    _amount("minAvailable"),
    _amount("maxUnavailable"),
    _count("Allowed Disruptions", "status", "disruptionsAllowed"),
    AGE,
)


def _controller(obj: Obj, _now: dt.datetime) -> str:
    owners = obj["metadata"].get("ownerReferences") or []
    owner = next((one for one in owners if one.get("controller")), None)
    if owner is None:
        return NONE
    group = owner["apiVersion"].rpartition("/")[0]
    return f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"


CONTROLLER_REVISIONS = (
    NAME,
    Column("Controller", _controller),
    Column("Revision", field("revision", default=UNKNOWN)),
    AGE,
)
