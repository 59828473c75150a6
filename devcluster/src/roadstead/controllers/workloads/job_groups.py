"""Gives a Job whose pods need one another a Workload and a PodGroup, before its first pod.

Such a Job is Indexed, has as many completions as pods at a time, more than one, and a template without a
group. Its pods are a gang of ``parallelism``. A Job that has started without a group, and one whose objects
are not its own, or not one of each, starts pods without a group.

Source: KEP-5547; kubernetes v1.36 ``pkg/controller/job/job_scheduling_manager.go``, gate
``WorkloadWithJob``. Differs: names of the objects end with other hashes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.ownership import controller_of
from roadstead.controllers.workloads import job_indexes
from roadstead.controllers.workloads.revisions import template_hash
from roadstead.kinds.pod_groups import GROUP, POD_GROUPS, VERSION, WORKLOADS

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.values.resources import Obj


def group_of(context: Context, component: str, job: Obj, reference: Obj, pods: list[Obj]) -> str:
    """The PodGroup of the pods of a Job, made at its first start; "" if they have none.

    ``reference`` is that of an owned object to the Job.
    """
    if not _is_gang(job):
        return ""
    of_job = [
        each
        for each in _in_namespace(context, WORKLOADS, job)
        if (each["spec"].get("controllerRef") or {}).get("name") == job["metadata"]["name"]
        and each["spec"]["controllerRef"].get("kind") == "Job"
    ]
    if not of_job and _is_new(job, pods):
        of_job = [_make_workload(context, component, job, reference)]
    workload = _its_own(of_job, job)
    templates = workload["spec"].get("podGroupTemplates") or [] if workload else []
    if workload is None or len(templates) != 1:
        return ""
    of_workload = [
        each
        for each in _in_namespace(context, POD_GROUPS, job)
        if _workload_of(each) == workload["metadata"]["name"]
    ] or [_make_group(context, workload, templates[0], reference)]
    group = _its_own(of_workload, job)
    return group["metadata"]["name"] if group else ""


def _is_gang(job: Obj) -> bool:
    spec = job["spec"]
    count = spec.get("parallelism", 1)
    is_free = not spec["template"]["spec"].get("schedulingGroup")
    return bool(is_free and job_indexes.is_indexed(job) and 1 < count == spec.get("completions"))


def _is_new(job: Obj, pods: list[Obj]) -> bool:
    """Whether a Job has never started, nor been suspended."""
    status = job.get("status") or {}
    counts = (status.get(each) for each in ("startTime", "succeeded", "failed"))
    was_suspended = any(each["type"] == "Suspended" for each in status.get("conditions") or ())
    return not (pods or any(counts) or was_suspended)


def _in_namespace(context: Context, resource: str, job: Obj) -> list[Obj]:
    namespace = job["metadata"]["namespace"]
    return [each for each in context.api.list(resource) if each["metadata"]["namespace"] == namespace]


def _its_own(found: list[Obj], job: Obj) -> Obj | None:
    """The only object, if the Job controls it."""
    owner = controller_of(found[0]) if len(found) == 1 else None
    return found[0] if owner is not None and owner["uid"] == job["metadata"]["uid"] else None


def _workload_of(group: Obj) -> str:
    named = (group["spec"].get("podGroupTemplateRef") or {}).get("workload") or {}
    return str(named.get("workloadName", ""))


def _make_workload(context: Context, component: str, job: Obj, reference: Obj) -> Obj:
    name = job["metadata"]["name"]
    metadata = {
        "name": f"{name}-{template_hash({'uid': job['metadata']['uid']})}",
        "namespace": job["metadata"]["namespace"],
        "ownerReferences": [reference],
    }
    policy = {"gang": {"minCount": job["spec"]["parallelism"]}}
    spec = {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": name},
        "podGroupTemplates": [{"name": f"{name}-pgt-0", "schedulingPolicy": policy}],
    }
    made = context.api.create(WORKLOADS, _object("Workload", metadata, spec))
    told = f"Created Workload {made['metadata']['name']} for Job {name}"
    context.events.record(component, job, "WorkloadCreated", told)
    return made


def _make_group(context: Context, workload: Obj, template: Obj, reference: Obj) -> Obj:
    name, uid = workload["metadata"]["name"], workload["metadata"]["uid"]
    of_workload = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Workload", "name": name, "uid": uid}
    metadata = {
        "name": f"{name}-{template['name']}-{template_hash({'of': [name, template['name']]})}",
        "namespace": workload["metadata"]["namespace"],
        "ownerReferences": [reference, of_workload],
    }
    named = {"workloadName": name, "podGroupTemplateName": template["name"]}
    spec = {"podGroupTemplateRef": {"workload": named}, "schedulingPolicy": template["schedulingPolicy"]}
    return context.api.create(POD_GROUPS, _object("PodGroup", metadata, spec))


def _object(kind: str, metadata: Obj, spec: Obj) -> Obj:
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": metadata, "spec": spec}
