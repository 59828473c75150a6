"""Reads the state that a check judges; each failed read is part of the result."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from plimsoll.adoption.admission_objects import GROUP as ADMISSION_GROUP
from plimsoll.adoption.admission_objects import POLICIES, PREFIX
from plimsoll.check.adoption import AdoptionState
from plimsoll.check.installations import Installation, installations
from plimsoll.check.leaders import NAME
from plimsoll.check.record_guard import AdmissionPolicies
from plimsoll.cluster.watched_resources import AUTOSCALERS, CORE_COMPOSITES, CORE_POD_GROUPS
from plimsoll.kube.adoption import KINDS, AdmissionObjects
from plimsoll.kube.custom_resources import GROUP, shadowing_evictions
from plimsoll.kube.leases import GROUP as LEASE_GROUP
from plimsoll.kube.lists import objects
from plimsoll.kube.resource_claims import GROUP as DEVICES
from plimsoll.kube.resource_claims import ResourceClaims
from plimsoll.kube.session.discovery import first_offered, offered
from plimsoll.kube.session.errors import APIError, NotFound, Unauthorized
from plimsoll.kube.session.session import Session
from plimsoll.model.decoding import DecodeError, convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.preflight.definition_reader import all_of, attempt, read_definitions
from plimsoll.preflight.findings import Unread
from plimsoll.preflight.leases import Leases, lease_of
from plimsoll.preflight.other_schedulers import REPORTERS
from plimsoll.preflight.policy_conditions import name_of
from plimsoll.preflight.rights import DevicePresence
from plimsoll.preflight.unserved_pods import UnreportedPods, waiting_names
from plimsoll.preflight.workloads import RunningWorkload, keys_of, workload

Document = Mapping[str, Any]

PODS = "/api/v1/pods"
ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

#: The resources to search for other schedulers; of pods only static ones.
WORKLOADS = (
    ("Deployment", "/apis/apps/v1/deployments"),
    ("StatefulSet", "/apis/apps/v1/statefulsets"),
    ("DaemonSet", "/apis/apps/v1/daemonsets"),
    ("CronJob", "/apis/batch/v1/cronjobs"),
    ("Pod", "/api/v1/namespaces/kube-system/pods"),
)

#: Maximum number of scheduler names whose pods are looked up one by one.
MOST_NAMES = 20


class Survey(Struct, frozen=True):
    """The state of the cluster.

    Attributes:
        now: The time of the survey, in seconds since the epoch.
        definitions: Our CustomResourceDefinitions, keyed by name.
        shadow: The built-in resource that kubectl reads instead of ours.
        waiting: Pending pods by scheduler name, for names that no known scheduler serves.
        placed: The scheduler names among these whose pods were placed before.
        reporters: Reporters of the cluster's events.
        guards: The cluster's admission policies.
        adoption: What adopts pods.
        keys: Annotations and labels of nodes and namespaces, by object.
        devices: Whether the cluster has dynamically allocated devices.
        has_autoscalers: Whether it has VerticalPodAutoscalers; if unreadable, it may.
        serves_pod_groups: Whether the API server serves PodGroups of scheduling.k8s.io.
        serves_composites: Whether it serves CompositePodGroups.
        unread: Failed reads of workloads and events.
    """

    now: float
    definitions: Mapping[str, Document | Unread | None]
    shadow: str
    policies: Sequence[Document] | Unread
    leases: Leases | Unread
    workloads: tuple[RunningWorkload, ...]
    installed: tuple[Installation, ...] | Unread
    reporters: frozenset[str]
    waiting: UnreportedPods | Unread
    placed: frozenset[str]
    guards: AdmissionPolicies | Unread
    adoption: AdoptionState | Unread
    keys: Mapping[str, Sequence[str]] | Unread
    devices: DevicePresence
    has_autoscalers: bool
    serves_pod_groups: bool
    serves_composites: bool
    unread: tuple[Unread, ...]


async def survey(session: Session, now: float, namespace: str) -> Survey:
    """Read everything except rights; if not all leases may be listed, only ours in a namespace."""
    async with asyncio.TaskGroup() as group:
        defined = group.create_task(read_definitions(session))
        shadow = group.create_task(shadowing_evictions(session))
        policies = group.create_task(
            attempt(f"{GROUP}/schedulingpolicies", lambda path: all_of(session, path))
        )
        leases = group.create_task(
            attempt(f"{LEASE_GROUP}/leases", lambda path: _leases(session, path, namespace))
        )
        tasks = [group.create_task(attempt(path, _workloads(session, kind))) for kind, path in WORKLOADS]
        reported = group.create_task(attempt("/api/v1/events", lambda path: _reporters(session, path)))
        devices = group.create_task(_devices(session))
        autoscalers = group.create_task(_has_autoscalers(session))
        groups = group.create_task(first_offered(session, CORE_POD_GROUPS))
        composites = group.create_task(first_offered(session, CORE_COMPOSITES))
        guards = group.create_task(attempt(ADMISSION, lambda path: _guards(session, path)))
        adoption = group.create_task(
            attempt(f"/apis/{ADMISSION_GROUP}/v1/{POLICIES}", lambda _: _adoption(session))
        )
        keys = group.create_task(attempt("/api/v1/nodes", lambda path: _keys(session, path)))
        waits = group.create_task(attempt(PODS, lambda path: _waiting(session, path, now)))
    waiting, reporters, workloads = waits.result(), reported.result(), [each.result() for each in tasks]
    deployments = workloads[0]
    names = (
        ()
        if isinstance(waiting, Unread)
        else tuple(dict.fromkeys((*waiting.names, *waiting.young)))[:MOST_NAMES]
    )
    placed = await asyncio.gather(*(_is_placed(session, name) for name in names))
    return Survey(
        now=now,
        definitions=defined.result(),
        shadow=shadow.result(),
        policies=policies.result(),
        leases=leases.result(),
        workloads=tuple(one for each in workloads if not isinstance(each, Unread) for one in each),
        installed=deployments if isinstance(deployments, Unread) else installations(deployments),
        reporters=frozenset() if isinstance(reporters, Unread) else reporters,
        waiting=waiting,
        placed=frozenset(name for name, is_placed in zip(names, placed, strict=True) if is_placed),
        guards=guards.result(),
        adoption=adoption.result(),
        keys=keys.result(),
        devices=devices.result(),
        has_autoscalers=autoscalers.result(),
        serves_pod_groups=groups.result()[0].is_done,
        serves_composites=composites.result()[0].is_done,
        unread=tuple(each for each in (*workloads, reporters) if isinstance(each, Unread)),
    )


# -- single reads ----------------------------------------------------------------------------------------


async def _leases(session: Session, path: str, namespace: str) -> Leases:
    try:
        found = await all_of(session, path)
    except Unauthorized:
        if not namespace:
            raise
        found = await _one(session, path.replace("/leases", f"/namespaces/{namespace}/leases/{NAME}"))
    keyed = {}
    for each in found:
        metadata = each.get("metadata") or {}
        keyed[str(metadata.get("namespace", "")), str(metadata.get("name", ""))] = lease_of(each)
    return keyed


async def _one(session: Session, path: str) -> Sequence[Document]:
    try:
        return (await session.object("GET", path),)
    except NotFound:
        return ()


def _workloads(session: Session, kind: str) -> Callable[[str], Awaitable[tuple[RunningWorkload, ...]]]:
    async def read(path: str) -> tuple[RunningWorkload, ...]:
        found = [workload(kind, each) async for each in objects(session, path) if _runs_by_itself(kind, each)]
        return tuple(found)

    return read


def _runs_by_itself(kind: str, document: Document) -> bool:
    """Whether a workload belongs to no other that is read; a static pod belongs only to its node."""
    owners = (document.get("metadata") or {}).get("ownerReferences") or ()
    return kind != "Pod" or all(each.get("kind") == "Node" for each in owners)


async def _reporters(session: Session, path: str) -> frozenset[str]:
    async def has(name: str) -> bool:
        async for _ in objects(session, path, {"fieldSelector": f"source={name}"}, limit=1):
            return True
        return False

    found = await asyncio.gather(*map(has, REPORTERS))
    return frozenset(name for name, is_found in zip(REPORTERS, found, strict=True) if is_found)


async def _guards(session: Session, path: str) -> AdmissionPolicies:
    try:
        return AdmissionPolicies(
            await all_of(session, path), await all_of(session, path.replace("policies", "policybindings"))
        )
    except NotFound:
        return AdmissionPolicies()  # the server has no such resource


async def _adoption(session: Session) -> AdoptionState:
    """The admission objects that adopt pods."""
    version = await AdmissionObjects(session).served_version()
    documents = [
        {"kind": kind, **each}
        for kind, plural in KINDS.items()
        if version
        async for each in objects(session, f"/apis/{ADMISSION_GROUP}/{version}/{plural}")
        if name_of(each).startswith(PREFIX)
    ]
    return AdoptionState(version, documents)


async def _keys(session: Session, nodes: str) -> Mapping[str, Sequence[str]]:
    return {
        f"{kind} {name_of(each)}": keys_of(each.get("metadata") or {})
        for kind, path in (("Node", nodes), ("Namespace", "/api/v1/namespaces"))
        async for each in objects(session, path)
    }


async def _devices(session: Session) -> DevicePresence:
    """Whether there are devices or claims; if unreadable, there may be."""
    if not (await ResourceClaims(session).offered()).is_done:
        return DevicePresence.NOT_SERVED
    for name in ("resourceslices", "resourceclaims"):
        found = await attempt(f"{DEVICES}/{name}", lambda path: _has_any(session, path))
        if found is not False:
            return DevicePresence.USED
    return DevicePresence.UNUSED


async def _has_autoscalers(session: Session) -> bool:
    """Whether there are any; if unreadable, there may be."""
    group, _, name = AUTOSCALERS.path.rpartition("/")
    if not (await offered(session, group, (name,))).is_done:
        return False
    return await attempt(AUTOSCALERS.path, lambda path: _has_any(session, path)) is not False


async def _has_any(session: Session, path: str) -> bool:
    async for _ in objects(session, path, limit=1):
        return True
    return False


async def _waiting(session: Session, path: str, now: float) -> UnreportedPods:
    return waiting_names([pod async for pod in _pods(session, path, "spec.nodeName=")], now)


async def _is_placed(session: Session, name: str) -> bool:
    """Whether a pod of a scheduler name has a node."""
    selectors = {"fieldSelector": f"spec.schedulerName={name},spec.nodeName!="}
    try:
        async for _ in objects(session, PODS, selectors, limit=1):
            return True
    except APIError:
        return False
    return False


async def _pods(session: Session, path: str, selector: str) -> AsyncIterator[Pod]:
    async for each in objects(session, path, {"fieldSelector": selector}):
        with suppress(DecodeError):  # the operator reports objects that it cannot decode
            yield convert(Pod, each)
