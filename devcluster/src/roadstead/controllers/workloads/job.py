"""Runs Jobs: creates their pods and counts each finished one once.

A finished pod has the Job's finalizer until the Job's status counts it, so a deleted pod is counted as well.
A pod that is deleted before its end counts as failed.

Source: kubernetes v1.36 ``pkg/controller/job/job_controller.go``, ``indexed_job_utils.go``;
``pkg/controller/ttlafterfinished``.
Differs: no podFailurePolicy, no successPolicy, no backoffLimitPerIndex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.ownership import Owners, controller_of, key_of
from roadstead.controllers.pod_state import (
    condition_of,
    has_condition,
    is_active,
    is_finished,
    is_ready,
    is_terminating,
    phase_of,
    with_condition,
)
from roadstead.controllers.workloads import job_groups, job_indexes
from roadstead.controllers.workloads.pod_creation import create_pod, delete_pod, pod_from_template
from roadstead.schemas.timestamps import to_seconds, to_timestamp

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

RESOURCE = "jobs.batch"
COMPONENT = "job-controller"
FINALIZER = "batch.kubernetes.io/job-tracking"
BATCH = 64
FIRST_BACKOFF_S, LAST_BACKOFF_S = 10.0, 600.0


class JobController:
    """Runs Jobs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._owners = Owners(RESOURCE, "batch/v1", "Job", self._enqueue)
        self._failures: dict[str, tuple[int, float]] = {}

    def start(self) -> None:
        """Subscribe to Jobs and their pods."""
        self._context.ownership.follow("pods", self._owners)
        self._context.enqueue_all(RESOURCE, self.reconcile)
        self._context.api.subscribe("pods", self._pod_changed)
        self._context.api.subscribe(RESOURCE, self._job_changed)

    def reconcile(self, key: str) -> None:
        """Count finished pods, decide whether the Job is complete, and create or delete pods."""
        job = self._context.find(RESOURCE, key)
        if job is None or is_terminating(job):
            return
        if _is_over(job):
            self._release(self._context.ownership.dependents("pods", job))
            return
        pods = self._context.ownership.claim("pods", self._owners, job)
        reference, group = self._owners.reference_to(job), ""
        if self._context.job_groups:
            group = job_groups.group_of(self._context, COMPONENT, job, reference, pods)
        status = self._started(job)
        self._count(job, status, pods)
        if not self._conclude(job, status, pods):
            self._resize(job, status, pods, group)
        self._write(job, status)
        self._release(pods)

    def release_orphan(self, key: str) -> None:
        """Remove the finalizer of a pod whose Job was deleted."""
        pod = self._context.find("pods", key)
        if pod is not None and self._job_of(pod) is None:
            self._release([pod], finished_only=False)

    def _enqueue(self, key: str) -> None:
        self._context.queue.add(self.reconcile, key)

    def _pod_changed(self, kind: EventType, pod: Obj, _old: Obj | None) -> None:
        """Queue pods with the finalizer of a deleted Job."""
        if (
            kind != "DELETED"
            and FINALIZER in (pod["metadata"].get("finalizers") or ())
            and self._job_of(pod) is None
        ):
            self._context.queue.add(self.release_orphan, key_of(pod))

    def _job_changed(self, kind: EventType, job: Obj, _old: Obj | None) -> None:
        """Queue the pods of a deleted Job."""
        if kind == "DELETED":
            self._failures.pop(job["metadata"]["uid"], None)
            for pod in self._context.ownership.dependents("pods", job):
                self._context.queue.add(self.release_orphan, key_of(pod))

    def _job_of(self, pod: Obj) -> Obj | None:
        reference = controller_of(pod)
        if reference is None or reference["kind"] != "Job":
            return None
        job = self._context.find(RESOURCE, f"{pod['metadata']['namespace']}/{reference['name']}")
        return job if job and job["metadata"]["uid"] == reference["uid"] else None

    def _started(self, job: Obj) -> Obj:
        """The current status, with a start time unless the Job is suspended."""
        status = dict(job.get("status") or {})
        if not job["spec"].get("suspend") and "startTime" not in status:
            status["startTime"] = to_timestamp(self._context.now)
        return status

    def _count(self, job: Obj, status: Obj, pods: list[Obj]) -> None:
        """Add the pods that have finished since, and count the active ones."""
        tracked = [pod for pod in pods if FINALIZER in (pod["metadata"].get("finalizers") or ())]
        only_failed = job["spec"].get("podReplacementPolicy") == "Failed"
        succeeded = [pod for pod in tracked if phase_of(pod) == "Succeeded"]
        failed = [pod for pod in tracked if _has_failed(pod, only_failed=only_failed)]
        if job_indexes.is_indexed(job):
            status["completedIndexes"] = job_indexes.with_completed(
                job, status.get("completedIndexes", ""), succeeded
            )
            status["succeeded"] = len(job_indexes.parsed(status["completedIndexes"]))
        else:
            status["succeeded"] = status.get("succeeded", 0) + len(succeeded)
        status["failed"] = status.get("failed", 0) + len(failed)
        if failed and not job["spec"].get("suspend"):
            count, _ = self._failures.get(job["metadata"]["uid"], (0, 0.0))
            self._failures[job["metadata"]["uid"]] = (count + len(failed), self._context.now)
        active = [pod for pod in pods if is_active(pod)]
        status["active"] = len(active)
        status["ready"] = sum(map(is_ready, active))
        status["terminating"] = sum(is_terminating(pod) and not is_finished(pod) for pod in pods)

    def _conclude(self, job: Obj, status: Obj, pods: list[Obj]) -> bool:
        """Set conditions; True if the Job is complete or about to be, so that no pod is created."""
        active = [pod for pod in pods if is_active(pod)]
        verdict = self._verdict(job, status, pods)
        if verdict is None:
            return False
        kind, reason, message = verdict
        if kind == "Failed":
            self._set(status, "FailureTarget", "True", reason, message)
            for pod in active:
                delete_pod(self._context, COMPONENT, job, pod)
            status["failed"] += len(active)
        else:
            self._set(status, "SuccessCriteriaMet", "True", reason, message)
            for pod in active:
                delete_pod(self._context, COMPONENT, job, pod)
        left = self._context.ownership.dependents("pods", job)
        status["active"] = status["ready"] = 0
        status["terminating"] = sum(is_terminating(pod) and not is_finished(pod) for pod in left)
        if not status["terminating"]:
            self._set(status, kind, "True", reason, message)
            if kind == "Complete":
                status["completionTime"] = to_timestamp(self._context.now)
            event = (
                ("Normal", "Completed", "Job completed")
                if kind == "Complete"
                else ("Warning", reason, message)
            )
            self._context.events.record(COMPONENT, job, event[1], event[2], event[0])
        return True

    def _verdict(self, job: Obj, status: Obj, pods: list[Obj]) -> tuple[str, str, str] | None:
        """The condition that ends the Job, with reason and message; None while it runs."""
        if (target := condition_of({"status": status}, "FailureTarget")) and target["status"] == "True":
            return "Failed", target["reason"], target["message"]
        spec = job["spec"]
        limit = spec.get("backoffLimit", 6)
        restarts = (
            sum(map(_restarts, pods)) if spec["template"]["spec"].get("restartPolicy") == "OnFailure" else 0
        )
        if status["failed"] > limit or (restarts and restarts >= max(limit, 1)):
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if (seconds := spec.get("activeDeadlineSeconds")) is not None and "startTime" in status:
            left = to_seconds(status["startTime"]) + seconds - self._context.now
            if left <= 0:
                return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
            self._context.queue.add(self.reconcile, key_of(job), left)
        completions = spec.get("completions")
        enough = (
            status["succeeded"] >= completions
            if completions is not None
            else (status["succeeded"] > 0 and not status["active"])
        )
        if enough and not spec.get("suspend"):
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def _resize(self, job: Obj, status: Obj, pods: list[Obj], group: str) -> None:
        """Create missing pods, or delete surplus ones."""
        active = [pod for pod in pods if is_active(pod)]
        if job["spec"].get("suspend"):
            for pod in active:
                delete_pod(self._context, COMPONENT, job, pod)
            status.pop("startTime", None)
            self._set(status, "Suspended", "True", "JobSuspended", "Job suspended")
        else:
            if has_condition({"status": status}, "Suspended"):
                self._set(status, "Suspended", "False", "JobResumed", "Job resumed")
                status["startTime"] = to_timestamp(self._context.now)
            missing = self._wanted(job, status) - len(active)
            if job["spec"].get("podReplacementPolicy") == "Failed":
                missing -= status["terminating"]
            if missing > 0:
                self._create(job, status, pods, missing, group)
            for pod in sorted(active, key=is_ready)[: max(0, -missing)]:
                delete_pod(self._context, COMPONENT, job, pod)
        now = self._context.ownership.dependents("pods", job)
        status["active"] = sum(map(is_active, now))
        status["ready"] = sum(is_active(pod) and is_ready(pod) for pod in now)
        status["terminating"] = sum(is_terminating(pod) and not is_finished(pod) for pod in now)

    @staticmethod
    def _wanted(job: Obj, status: Obj) -> int:
        """The desired number of active pods."""
        parallelism: int = job["spec"].get("parallelism", 1)
        completions = job["spec"].get("completions")
        if completions is None:
            return int(status["active"]) if status["succeeded"] else parallelism
        return max(0, min(parallelism, int(completions) - int(status["succeeded"])))

    def _create(self, job: Obj, status: Obj, pods: list[Obj], missing: int, group: str) -> None:
        """Create pods, in a PodGroup unless it is ""; after recent failures only after the back-off."""
        failures, since = self._failures.get(job["metadata"]["uid"], (0, 0.0))
        if failures:
            wait_s = (
                since + min(FIRST_BACKOFF_S * 2 ** min(failures - 1, 10), LAST_BACKOFF_S) - self._context.now
            )
            if wait_s > 0:
                self._context.queue.add(self.reconcile, key_of(job), wait_s)
                return
        if missing > BATCH:
            self._enqueue(key_of(job))
        count = min(missing, BATCH)
        indexed = job_indexes.is_indexed(job)
        free = (
            job_indexes.free(job, status.get("completedIndexes", ""), pods, count)
            if indexed
            else [None] * count
        )
        for index in free:
            reference = self._owners.reference_to(job)
            pod = pod_from_template(job["spec"]["template"], job, reference)
            pod["metadata"]["finalizers"] = [*pod["metadata"].get("finalizers", ()), FINALIZER]
            if index is not None:
                job_indexes.mark(pod, job, index)
            if group:
                pod["spec"]["schedulingGroup"] = {"podGroupName": group}
            create_pod(self._context, COMPONENT, job, pod)

    def _set(self, status: Obj, kind: str, state: str, reason: str, message: str) -> None:
        now = self._context.now
        conditions = with_condition(status.get("conditions") or [], kind, state, reason, message, now=now)
        status["conditions"] = [
            {"lastProbeTime": one["lastTransitionTime"], **one} if one["type"] == kind else one
            for one in conditions
        ]

    def _write(self, job: Obj, status: Obj) -> None:
        """Write the status; as in the API server's encoder, counts of 0 are omitted."""
        kept = {key: value for key, value in status.items() if value or key in ("ready", "terminating")}
        kept["uncountedTerminatedPods"] = {}
        self._context.write_status(RESOURCE, job, kept)

    def _release(self, pods: list[Obj], *, finished_only: bool = True) -> None:
        """Remove the finalizer of counted pods."""
        for pod in pods:
            finalizers = pod["metadata"].get("finalizers") or []
            if FINALIZER not in finalizers or (finished_only and is_active(pod)):
                continue
            kept = [one for one in finalizers if one != FINALIZER]
            patch = {"metadata": {"uid": pod["metadata"]["uid"], "finalizers": kept or None}}
            if self._context.find("pods", key_of(pod)):
                self._context.api.patch("pods", pod["metadata"]["namespace"], pod["metadata"]["name"], patch)


def _is_over(job: Obj) -> bool:
    return has_condition(job, "Complete") or has_condition(job, "Failed")


def _has_failed(pod: Obj, *, only_failed: bool) -> bool:
    """Whether a pod counts as failed: it failed, or it was deleted before its end."""
    if phase_of(pod) == "Failed":
        return True
    return not only_failed and is_terminating(pod) and phase_of(pod) != "Succeeded"


def _restarts(pod: Obj) -> int:
    """The number of restarts of a pod's containers."""
    return sum(one.get("restartCount", 0) for one in (pod.get("status") or {}).get("containerStatuses") or ())
