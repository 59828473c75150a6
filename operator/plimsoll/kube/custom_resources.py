"""SchedulingPolicies and PodGroups through the API server: lists and status writes."""

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.api.v1alpha1.pod_group import PodGroupResourceStatus
from plimsoll.kube.session.errors import APIError, answer_of, answered
from plimsoll.kube.session.session import MERGE_PATCH, Session
from plimsoll.ports.writes import WriteOutcome, WriteResult

POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"


class PolicyStatusPatcher:
    """Writes the status of policies."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge into the policy's status."""
        return await answered(
            self._session.request(
                "PATCH", f"{POLICIES}/{name}/status", {"status": status}, content_type=MERGE_PATCH
            )
        )


#: A merge patch removes what it sets to null.
_ABSENT: Mapping[str, None] = {
    field.alias or name: None for name, field in PodGroupResourceStatus.model_fields.items()
}


class PodGroupStatusPatcher:
    """Writes the status of PodGroups."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def write_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Replace a group's status; fields that are no longer set are removed."""
        return await answered(
            self._session.request(
                "PATCH",
                f"/apis/plimsoll.dev/v1alpha1/namespaces/{namespace}/podgroups/{name}/status",
                {"status": {**_ABSENT, **status}},
                content_type=MERGE_PATCH,
            )
        )


class PolicyList:
    """Lists policies."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All policies; GONE when the CustomResourceDefinition is not installed."""
        try:
            listed = await self._session.object("GET", POLICIES)
        except APIError as exc:
            return answer_of(exc), ()
        return WriteResult(WriteOutcome.DONE), listed.get("items") or ()
