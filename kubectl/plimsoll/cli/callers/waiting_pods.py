"""Hands waiting pods of a scheduler name to default-scheduler: evicts those whose owners make them again.

Everything is checked before the first eviction, and each pod again immediately before its own: the eviction
names the version of the pod in which it had no node, so a pod that was placed meanwhile stays.
Source: kube-apiserver v1.36, ``pkg/registry/core/pod/storage/eviction.go``.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from plimsoll.adoption.admission_objects import adopt_of
from plimsoll.commands.errors import UserError
from plimsoll.kube.custom_resources import GROUP
from plimsoll.kube.leases import GROUP as LEASE_GROUP
from plimsoll.kube.lists import objects
from plimsoll.kube.session.errors import APIError, NotFound, readable
from plimsoll.kube.session.session import Session
from plimsoll.policies.conditions import scheduler_name_of
from plimsoll.preflight.leases import is_renewed, lease_of
from plimsoll.preflight.policy_conditions import at_work, claims_of, name_of, reason_not_to_adopt

#: Collections of owners that make pods from a template.
_OWNERS = {
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "ReplicationController": "/api/v1/namespaces/{}/replicationcontrollers",
}

Document = Mapping[str, Any]


class Release(Struct, frozen=True):
    """What is to be released.

    Attributes:
        scheduler: The scheduler name of the pods.
        namespace: Their namespace; "" for all.
        lease: The name of the operator's lease.
        is_applied: Whether pods are evicted, or only named.
    """

    scheduler: str
    namespace: str
    lease: str
    is_applied: bool


async def release(session: Session, wanted: Release) -> Sequence[str]:
    """Evict the waiting pods that are made again for default-scheduler; returns a line for each pod.

    Raises:
        UserError: An operator serves the scheduler name, or new pods would get it again.
        APIError: The server refused a request, or did not respond.
    """
    await _until_unserved(session, wanted)
    where = f"/api/v1/namespaces/{wanted.namespace}/pods" if wanted.namespace else "/api/v1/pods"
    selector = {"fieldSelector": f"spec.schedulerName={wanted.scheduler},spec.nodeName="}
    owners: dict[tuple[str, str, str], Document | None] = {}
    lines = []
    async for pod in objects(session, where, selector):
        with readable(f"GET {where}"):
            metadata, key = pod["metadata"], f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            obstacle = await _obstacle(session, pod, wanted.scheduler, owners)
        if metadata.get("deletionTimestamp"):
            continue
        if obstacle:
            lines.append(f"pod {key} stays: {obstacle}")
        elif not wanted.is_applied:
            lines.append(f"pod {key} would be evicted, and its owner makes it again for default-scheduler")
        else:
            lines.append(f"pod {key} {await _evicted(session, pod)}")
    return lines or [f"no pod waits for schedulerName {wanted.scheduler}"]


async def _until_unserved(session: Session, wanted: Release) -> None:
    """Check that no operator serves the scheduler name, and that no new pod gets it."""
    scheduler = wanted.scheduler
    documents = [each async for each in objects(session, f"{GROUP}/schedulingpolicies")]
    for policy in at_work(documents):
        document = next(each for each in documents if name_of(each) == policy.metadata.name)
        is_named = scheduler_name_of(policy, document) == scheduler
        if is_named and adopt_of(policy) is not None and not reason_not_to_adopt(document):
            name = policy.metadata.name
            raise UserError(
                f"policy {name} adopts pods: new ones get schedulerName {scheduler} again; wait for the"
                f" watchdog, or plimsoll pause {name}"
            )
    name, problem = claims_of(documents).get(scheduler, ("", ""))
    async for document in objects(
        session, f"{LEASE_GROUP}/leases", {"fieldSelector": f"metadata.name={wanted.lease}"}
    ):
        if name and not problem and is_renewed(lease_of(document), time.time()):
            where = f"{document['metadata']['namespace']}/{wanted.lease}"
            raise UserError(
                f"policy {name} serves schedulerName {scheduler}, and an operator leads (lease {where}):"
                f" plimsoll explain pod says why a pod waits; to hand its pods over, first plimsoll pause"
                f" {name}"
            )


async def _obstacle(
    session: Session, pod: Document, scheduler: str, owners: dict[tuple[str, str, str], Document | None]
) -> str:
    """Why evicting a pod would not hand it over, "" if it would."""
    references = pod["metadata"].get("ownerReferences") or ()
    owner = next((each for each in references if each.get("controller")), None)
    if owner is None:
        return "it has no owner that makes it again; delete it, and create it without the schedulerName"
    kind, name, namespace = owner["kind"], owner["name"], pod["metadata"]["namespace"]
    text = f"{kind} {namespace}/{name}"
    if kind not in _OWNERS:
        return f"its owner {text} is of a kind whose pod template is not known; hand it over yourself"
    key = (kind, namespace, name)
    if key not in owners:
        try:
            owners[key] = await session.object("GET", f"{_OWNERS[kind].format(namespace)}/{name}")
        except NotFound:
            owners[key] = None
    found = owners[key]
    if found is None or found["metadata"]["uid"] != owner["uid"]:
        return f"its owner {text} does not exist any more"
    spec, status = found["spec"], found.get("status") or {}
    if spec["template"]["spec"].get("schedulerName") == scheduler:
        return f"its owner {text} names the scheduler in its pod template: change it there"
    if kind == "Job" and status.get("failed", 0) >= spec.get("backoffLimit", 6):
        return f"its owner {text} counts an evicted pod as failed, and allows no further one (backoffLimit)"
    return ""


async def _evicted(session: Session, pod: Document) -> str:
    """Evict a pod in the version in which it waits; returns the outcome."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    try:
        now = await session.object("GET", path)
        if now["metadata"]["uid"] != pod["metadata"]["uid"]:
            return "stays: another pod has its name"
        if node := now["spec"].get("nodeName"):
            return f"stays: it was placed on {node} meanwhile"
        version = {key: now["metadata"][key] for key in ("uid", "resourceVersion")}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": version},
        }
        await session.request("POST", f"{path}/eviction", body)
    except NotFound:
        return "has left"
    except APIError as exc:
        return f"stays: {exc.message or exc.reason}"
    return "evicted: its owner makes it again for default-scheduler"
