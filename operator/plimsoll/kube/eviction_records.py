"""The Eviction records, as custom resources."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from plimsoll.api.v1alpha1.eviction import EvictionStatus
from plimsoll.kube.session.errors import APIError, answer_of, answered
from plimsoll.kube.session.session import MERGE_PATCH, Session
from plimsoll.kube.watched_resources import WatchedResource
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.ports.writes import WriteOutcome, WriteResult

GROUP = "/apis/plimsoll.dev/v1alpha1"

#: A merge patch removes what it sets to null.
_ABSENT: Mapping[str, None] = {
    field.alias or name: None for name, field in EvictionStatus.model_fields.items()
}


class WatchedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is watched of a record: the rest is our own writing, and is not read back."""

    metadata: ObjectMeta = ObjectMeta()


RECORDS = WatchedResource("evictions", f"{GROUP}/evictions", WatchedRecord)


class EvictionRecords:
    """Creates, completes, lists and drops records."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def create(self, document: Mapping[str, Any]) -> WriteResult:
        """Write a new record, and its status, which the API server takes separately."""
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        bare = {key: value for key, value in document.items() if key != "status"}
        answer = await answered(
            self._session.request("POST", f"{GROUP}/namespaces/{namespace}/evictions", bare)
        )
        if answer.is_done and document.get("status"):
            answer = await self.write_status(namespace, name, document["status"])
        return answer

    async def write_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Replace a record's status; fields that are no longer set are removed."""
        return await answered(
            self._session.request(
                "PATCH",
                f"{GROUP}/namespaces/{namespace}/evictions/{name}/status",
                {"status": {**_ABSENT, **status}},
                content_type=MERGE_PATCH,
            )
        )

    async def delete(self, namespace: str, name: str) -> WriteResult:
        """Drop a record."""
        return await answered(
            self._session.request("DELETE", f"{GROUP}/namespaces/{namespace}/evictions/{name}")
        )

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All records; GONE when the CustomResourceDefinition is not installed."""
        try:
            listed = await self._session.object("GET", f"{GROUP}/evictions")
        except APIError as exc:
            return answer_of(exc), ()
        return WriteResult(WriteOutcome.DONE), listed.get("items") or ()


#: Kubernetes 1.37's alpha group with a resource of our plural.
LIFECYCLE = "lifecycle.k8s.io"


async def shadowing_evictions(session: Session) -> str:
    """The built-in resource that kubectl means by a bare ``evictions``, "" when that is ours.

    kubectl takes the built-in group silently where both are served.
    """
    try:
        group = await session.object("GET", f"/apis/{LIFECYCLE}")
        for version in group.get("versions") or ():
            listed = await session.object("GET", f"/apis/{version['groupVersion']}")
            if any(resource.get("name") == "evictions" for resource in listed.get("resources") or ()):
                return f"evictions.{version['groupVersion']}"
    except (APIError, KeyError, TypeError):
        return ""
    return ""
