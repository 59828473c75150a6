"""Creates the Jobs of CronJobs at their times, and deletes old ones.

Source: kubernetes v1.36 ``pkg/controller/cronjob/cronjob_controllerv2.go``.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from roadstead.controllers.ownership import Owners, key_of
from roadstead.controllers.pod_state import has_condition, is_terminating
from roadstead.controllers.workloads.cron_schedule import schedule_of
from roadstead.schemas.timestamps import to_seconds, to_timestamp
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.values.resources import Obj

RESOURCE, JOBS = "cronjobs.batch", "jobs.batch"
COMPONENT = "cronjob-controller"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronJobController:
    """Runs CronJobs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._owners = Owners(RESOURCE, "batch/v1", "CronJob", self._enqueue)

    def start(self) -> None:
        """Subscribe to CronJobs and their Jobs."""
        self._context.ownership.follow(JOBS, self._owners)
        self._context.enqueue_all(RESOURCE, self.reconcile)

    def reconcile(self, key: str) -> None:
        """Count Jobs, delete old ones, and create one whose time has come."""
        cron = self._context.find(RESOURCE, key)
        if cron is None or is_terminating(cron):
            return
        jobs = self._context.ownership.dependents(JOBS, cron)
        status = self._counted(cron, jobs)
        self._clean_up(cron, jobs)
        if not cron["spec"].get("suspend"):
            self._schedule(cron, status)
        self._context.write_status(RESOURCE, cron, {name: value for name, value in status.items() if value})

    def _enqueue(self, key: str) -> None:
        self._context.queue.add(self.reconcile, key)

    def _counted(self, cron: Obj, jobs: list[Obj]) -> Obj:
        """The status with the Jobs that run, and the time of the last success."""
        status = dict(cron.get("status") or {})
        before = {one["uid"] for one in status.get("active") or ()}
        running = {job["metadata"]["uid"]: job for job in jobs if not _is_over(job)}
        for job in jobs:
            uid, name = job["metadata"]["uid"], job["metadata"]["name"]
            if uid in before and uid not in running:
                kind = "Complete" if has_condition(job, "Complete") else "Failed"
                message = f"Saw completed job: {name}, condition: {kind}"
                self._record(cron, "SawCompletedJob", message)
        status["active"] = [_reference(job) for job in running.values()]
        ended = [at for job in jobs if (at := (job.get("status") or {}).get("completionTime"))]
        if ended:
            status["lastSuccessfulTime"] = max([*ended, status.get("lastSuccessfulTime", "")])
        return status

    def _clean_up(self, cron: Obj, jobs: list[Obj]) -> None:
        """Delete finished Jobs beyond the limits of the history, the oldest first."""
        for kind, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            limit = cron["spec"].get(field)
            if limit is None:
                continue
            finished = [job for job in jobs if has_condition(job, kind)]
            finished.sort(
                key=lambda job: ((job.get("status") or {}).get("startTime", ""), job["metadata"]["name"])
            )
            for job in finished[: max(0, len(finished) - limit)]:
                self._delete(cron, job)

    def _schedule(self, cron: Obj, status: Obj) -> None:
        """Create a Job if its time has come, and queue the next time."""
        spec, key = cron["spec"], key_of(cron)
        try:
            schedule = schedule_of(spec["schedule"], spec.get("timeZone", ""))
        except (ValueError, KeyError) as error:
            message = f"unparseable schedule: {spec['schedule']} : {error}"
            self._record(cron, "UnparseableSchedule", message, "Warning")
            return
        now = dt.datetime.fromtimestamp(self._context.now, dt.UTC)
        if (following := schedule.after(now)) is not None:
            self._context.queue.add(self.reconcile, key, (following - now).total_seconds())
        since = _moment(status.get("lastScheduleTime") or cron["metadata"]["creationTimestamp"])
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None:
            since = max(since, now - dt.timedelta(seconds=deadline))
        due = schedule.latest(since, now)
        if due is None or not self._may_start(cron, status):
            return
        self._create(cron, status, due)

    def _may_start(self, cron: Obj, status: Obj) -> bool:
        """Whether the policy allows another Job; Replace deletes those that run."""
        policy = cron["spec"].get("concurrencyPolicy", "Allow")
        if policy == "Forbid" and status["active"]:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._record(cron, "JobAlreadyActive", message)
            return False
        if policy == "Replace":
            for reference in status["active"]:
                if job := self._context.find(JOBS, f"{reference['namespace']}/{reference['name']}"):
                    self._delete(cron, job)
            status["active"] = []
        return True

    def _create(self, cron: Obj, status: Obj, due: dt.datetime) -> None:
        template, meta = cron["spec"]["jobTemplate"], cron["metadata"]
        given = template.get("metadata") or {}
        moment = to_timestamp(due.timestamp())
        zone = cron["spec"].get("timeZone")
        local = (
            due.astimezone(schedule_of(cron["spec"]["schedule"], zone).zone).isoformat() if zone else moment
        )
        job = {
            "metadata": {
                "name": f"{meta['name']}-{int(due.timestamp()) // 60}",
                "namespace": meta["namespace"],
                "labels": dict(given.get("labels") or {}),
                "annotations": {**(given.get("annotations") or {}), SCHEDULED: local},
                "ownerReferences": [self._owners.reference_to(cron)],
            },
            "spec": copied(template["spec"]),
        }
        try:
            created = self._context.api.create(JOBS, job)
        except StatusError as error:
            if error.reason == "AlreadyExists":
                status["lastScheduleTime"] = moment
                return
            self._record(cron, "FailedCreate", f"Error creating job: {error.message}", "Warning")
            raise
        self._record(cron, "SuccessfulCreate", f"Created job {created['metadata']['name']}")
        status["active"] = [*status["active"], _reference(created)]
        status["lastScheduleTime"] = moment

    def _delete(self, cron: Obj, job: Obj) -> None:
        metadata = job["metadata"]
        try:
            self._context.api.delete(
                JOBS, metadata["namespace"], metadata["name"], propagation="Background", uid=metadata["uid"]
            )
        except StatusError as error:
            if error.code not in (404, 409):
                raise
            return
        self._record(cron, "SuccessfulDelete", f"Deleted job {metadata['name']}")

    def _record(self, cron: Obj, reason: str, message: str, kind: str = "Normal") -> None:
        self._context.events.record(COMPONENT, cron, reason, message, kind)


def _is_over(job: Obj) -> bool:
    return has_condition(job, "Complete") or has_condition(job, "Failed")


def _reference(job: Obj) -> Obj:
    metadata = job["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"apiVersion": "batch/v1", "kind": "Job", **kept}


def _moment(timestamp: str) -> dt.datetime:
    return dt.datetime.fromtimestamp(to_seconds(timestamp), dt.UTC)
