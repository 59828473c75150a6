"""PATCH podgroups/status: how far a gang has come."""

from collections.abc import Mapping
from typing import Any

from plimsoll.api.v1alpha1.pod_group import PodGroupStatus
from plimsoll.kube.session.session import MERGE_PATCH, Session
from plimsoll.kube.session.write_results import answered
from plimsoll.ports.writes import WriteResult

#: A merge patch removes what it sets to null.
_ABSENT: Mapping[str, None] = {
    field.alias or name: None for name, field in PodGroupStatus.model_fields.items()
}


class PodGroupStatusPatcher:
    """Writes what the operator says of a gang."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def write_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Replace a group's status; what it does not say any more is removed."""
        return await answered(
            self._session.request(
                "PATCH",
                f"/apis/plimsoll.dev/v1alpha1/namespaces/{namespace}/podgroups/{name}/status",
                {"status": {**_ABSENT, **status}},
                content_type=MERGE_PATCH,
            )
        )
