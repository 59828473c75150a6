"""GET, POST and PUT of one Lease (coordination.k8s.io/v1)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from plimsoll.kube.events import micro_time
from plimsoll.kube.session.errors import APIError, NotFound, answer_of
from plimsoll.kube.session.session import Session
from plimsoll.ports.leases import Lease
from plimsoll.ports.writes import WriteOutcome, WriteResult

API = "coordination.k8s.io/v1"


class LeaseStore:
    """One Lease.

    Args:
        session: A connection of its own: renewals must not wait for other requests, nor pass the fence.
        namespace: Where it lies.
        name: Its name.
        timeout_s: Seconds that a request may take.
    """

    def __init__(self, session: Session, namespace: str, name: str, timeout_s: float) -> None:
        self._session = session
        self._namespace = namespace
        self._name = name
        self._timeout_s = timeout_s
        self._collection = f"/apis/{API}/namespaces/{namespace}/leases"

    @property
    def reference(self) -> Mapping[str, str]:
        """A reference to the lease."""
        return {"apiVersion": API, "kind": "Lease", "namespace": self._namespace, "name": self._name}

    async def read(self) -> tuple[WriteResult, Lease | None]:
        """The lease; None with DONE when it does not exist."""
        try:
            found = await self._session.object(
                "GET", f"{self._collection}/{self._name}", timeout_s=self._timeout_s
            )
        except NotFound:
            return WriteResult(WriteOutcome.DONE), None
        except APIError as exc:
            return answer_of(exc), None
        return WriteResult(WriteOutcome.DONE), lease_of(found)

    async def write(self, lease: Lease) -> tuple[WriteResult, Lease | None]:
        """Create it, or replace the version that it names."""
        method, path = (
            ("PUT", f"{self._collection}/{self._name}") if lease.version else ("POST", self._collection)
        )
        try:
            stored = await self._session.object(
                method, path, self._document(lease), timeout_s=self._timeout_s
            )
        except APIError as exc:
            return answer_of(exc), None
        return WriteResult(WriteOutcome.DONE), lease_of(stored)

    def _document(self, lease: Lease) -> dict[str, Any]:
        metadata = {**lease.metadata, "namespace": self._namespace, "name": self._name}
        if lease.version:
            metadata["resourceVersion"] = lease.version
        return {
            "apiVersion": API,
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": lease.holder or None,
                "leaseDurationSeconds": lease.duration_s,
                "acquireTime": micro_time(lease.acquired),
                "renewTime": micro_time(lease.renewed),
                "leaseTransitions": lease.transitions,
            },
        }


def lease_of(document: Mapping[str, Any]) -> Lease:
    """A lease as the server has it; missing fields are empty or zero."""
    spec: Mapping[str, Any] = document.get("spec") or {}
    metadata: Mapping[str, Any] = document.get("metadata") or {}
    return Lease(
        holder=str(spec.get("holderIdentity") or ""),
        duration_s=int(spec.get("leaseDurationSeconds") or 0),
        acquired=_seconds(spec.get("acquireTime")),
        renewed=_seconds(spec.get("renewTime")),
        transitions=int(spec.get("leaseTransitions") or 0),
        version=str(metadata.get("resourceVersion", "")),
        metadata={key: value for key, value in metadata.items() if key != "managedFields"},
    )


def _seconds(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
