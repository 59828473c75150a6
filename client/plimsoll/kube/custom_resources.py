"""Reads and writes our custom resources (policies, records, PodGroups), and PodGroups of the core API."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel

from plimsoll.cluster.watched_resources import WatchedResource
from plimsoll.kube.session.errors import APIError, answer_of
from plimsoll.kube.session.session import MERGE_PATCH, STRATEGIC_PATCH, Session
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.pod_group import CORE, PodGroup
from plimsoll.ports.custom_resources import WatchedMaintenance, WatchedRecord
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult

GROUP = "/apis/plimsoll.dev/v1alpha1"

#: Kubernetes 1.37's alpha group, which has a resource with the same plural as ours.
LIFECYCLE = "lifecycle.k8s.io"


RECORDS = WatchedResource("evictions", f"{GROUP}/evictions", WatchedRecord)

#: Watched where its definition is installed.
MAINTENANCES = WatchedResource("nodemaintenances", f"{GROUP}/nodemaintenances", WatchedMaintenance)


class PolicyResources:
    """Reads SchedulingPolicies, or NodeMaintenances, and writes their status."""

    def __init__(self, session: Session, plural: str = "schedulingpolicies") -> None:
        self._session = session
        self._path = f"{GROUP}/{plural}"

    async def write_status(self, name: str, status: Mapping[str, Any], *, version: str = "") -> WriteResult:
        """Merge into an object's status, in any version or only in one."""
        meant = {"metadata": {"resourceVersion": version}} if version else {}
        return await self._session.merge(f"{self._path}/{name}/status", {**meant, "status": status})

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All objects; GONE when the CustomResourceDefinition is not installed."""
        return await _listed(self._session, self._path)


class NamespacedResources:
    """Reads and writes Eviction records or PodGroups.

    Args:
        status: The type of their status; fields that a new status does not set are removed.
    """

    def __init__(self, session: Session, plural: str, status: type[BaseModel]) -> None:
        self._session = session
        self._plural = plural
        self._absent = {field.alias or name: None for name, field in status.model_fields.items()}

    def _path(self, namespace: str, *rest: str) -> str:
        return "/".join((GROUP, "namespaces", namespace, self._plural, *rest))

    async def create(self, document: Mapping[str, Any]) -> WriteResult:
        """Create an object, then write its status, which the API server takes in a separate request.

        Returns:
            The outcome, with uid and version of the object if it was created.
        """
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        bare = {key: value for key, value in document.items() if key != "status"}
        try:
            created = _stored(await self._session.object("POST", self._path(namespace), bare))
        except APIError as exc:
            return answer_of(exc)
        if not document.get("status"):
            return created
        # The uid, not the version: somebody may label a new object immediately.
        answer = await self._patch(namespace, name, document["status"], {"uid": created.uid}, "")
        return replace(answer, uid=created.uid)

    async def write_status(
        self,
        namespace: str,
        name: str,
        status: Mapping[str, Any],
        *,
        version: str = "",
        manager: str = "",
    ) -> WriteResult:
        """Replace an object's status, in any version or only in one; ``manager`` is named as its writer."""
        return await self._patch(namespace, name, status, {"resourceVersion": version}, manager)

    async def _patch(
        self, namespace: str, name: str, status: Mapping[str, Any], meant: Mapping[str, str], manager: str
    ) -> WriteResult:
        """Replace the status if the object's metadata has these values, as far as they are not empty."""
        body: dict[str, Any] = {"status": {**self._absent, **status}}
        if any(meant.values()):
            body["metadata"] = meant
        params = {"fieldManager": manager} if manager else None
        path = self._path(namespace, name, "status")
        try:
            written = await self._session.object("PATCH", path, body, content_type=MERGE_PATCH, params=params)
        except APIError as exc:
            return answer_of(exc)
        return _stored(written)

    async def look_up(self, namespace: str, name: str) -> WriteResult:
        """An object's uid and version by a list of one, which needs no rights beyond those of the watch."""
        answer, found = await _listed(
            self._session, self._path(namespace), {"fieldSelector": f"metadata.name={name}"}
        )
        if answer.is_done and not found:
            return WriteResult(WriteOutcome.GONE, f'{self._plural} "{name}" not found')
        return _stored(found[0]) if answer.is_done else answer

    async def delete(self, namespace: str, name: str, *, uid: str = "") -> WriteResult:
        """Delete an object of that uid, or whichever it is."""
        body = {"preconditions": {"uid": uid}} if uid else None
        return await self._session.write("DELETE", self._path(namespace, name), body)

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All of them; GONE when the CustomResourceDefinition is not installed."""
        return await _listed(self._session, f"{GROUP}/{self._plural}")


class PodGroupResources(NamespacedResources):
    """Writes the status of PodGroups: ours, and conditions of the core API's."""

    async def write_condition(
        self, version: str, group: PodGroup | CompositePodGroup, condition: Mapping[str, Any]
    ) -> WriteResult:
        """Set one condition of this very core group (by uid), in that version of the API; others stay."""
        plural = "compositepodgroups" if isinstance(group, CompositePodGroup) else "podgroups"
        body = {"metadata": {"uid": group.uid}, "status": {"conditions": [condition]}}
        path = f"/apis/{CORE}/{version}/namespaces/{group.namespace}/{plural}/{group.name}/status"
        return await self._session.write("PATCH", path, body, content_type=STRATEGIC_PATCH)


def _stored(document: Mapping[str, Any]) -> WriteResult:
    """The outcome of a write with this response."""
    metadata = document.get("metadata")
    known: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    return replace(DONE, uid=str(known.get("uid") or ""), version=str(known.get("resourceVersion") or ""))


async def _listed(
    session: Session, path: str, params: Mapping[str, str] | None = None
) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
    try:
        listed = await session.object("GET", path, params=params)
    except APIError as exc:
        return answer_of(exc), ()
    if "items" not in listed:
        return WriteResult(WriteOutcome.UNKNOWN, f"GET {path}: the answer is no list"), ()
    items = listed["items"]
    found = [each for each in (items if isinstance(items, list) else ()) if _is_named(each)]
    return WriteResult(WriteOutcome.DONE), found


def _is_named(document: object) -> bool:
    """Whether a document is an object with a name, as every object of the API is."""
    metadata = document.get("metadata") if isinstance(document, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


async def shadowing_evictions(session: Session) -> str:
    """The built-in resource that kubectl reads for a bare ``evictions``; "" when it reads ours.

    Where both groups are served, kubectl silently chooses the built-in one.
    """
    try:
        group = await session.object("GET", f"/apis/{LIFECYCLE}")
        for version in group.get("versions") or ():
            listed = await session.object("GET", f"/apis/{version['groupVersion']}")
            if any(resource.get("name") == "evictions" for resource in listed.get("resources") or ()):
                return f"evictions.{version['groupVersion']}"
    except (APIError, AttributeError, KeyError, TypeError):
        return ""
    return ""
