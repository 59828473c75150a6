"""Reads and writes our custom resources: SchedulingPolicies, Eviction records, PodGroups."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from plimsoll.cluster.watched_resources import WatchedResource
from plimsoll.kube.session.errors import APIError, answer_of
from plimsoll.kube.session.session import Session
from plimsoll.ports.custom_resources import WatchedRecord
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult

GROUP = "/apis/plimsoll.dev/v1alpha1"

#: Kubernetes 1.37's alpha group, which has a resource with the same plural as ours.
LIFECYCLE = "lifecycle.k8s.io"


RECORDS = WatchedResource("evictions", f"{GROUP}/evictions", WatchedRecord)


class PolicyResources:
    """Reads SchedulingPolicies and writes their status."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge into the policy's status."""
        return await self._session.merge(f"{GROUP}/schedulingpolicies/{name}/status", {"status": status})

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All policies; GONE when the CustomResourceDefinition is not installed."""
        return await _listed(self._session, f"{GROUP}/schedulingpolicies")


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
            The outcome, and the uid of the object; empty if it was not created, or the response has none.
        """
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        bare = {key: value for key, value in document.items() if key != "status"}
        try:
            created = await self._session.object("POST", self._path(namespace), bare)
        except APIError as exc:
            return answer_of(exc)
        metadata = created.get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, dict) else None
        answer = DONE
        if document.get("status"):
            answer = await self.write_status(namespace, name, document["status"])
        return replace(answer, uid=uid if isinstance(uid, str) else "")

    async def write_status(
        self, namespace: str, name: str, status: Mapping[str, Any], manager: str = ""
    ) -> WriteResult:
        """Replace an object's status; managedFields name ``manager`` as its writer."""
        body = {"status": {**self._absent, **status}}
        params = {"fieldManager": manager} if manager else None
        return await self._session.merge(self._path(namespace, name, "status"), body, params=params)

    async def delete(self, namespace: str, name: str) -> WriteResult:
        """Delete an object."""
        return await self._session.write("DELETE", self._path(namespace, name))

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All of them; GONE when the CustomResourceDefinition is not installed."""
        return await _listed(self._session, f"{GROUP}/{self._plural}")


async def _listed(session: Session, path: str) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
    try:
        listed = await session.object("GET", path)
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
