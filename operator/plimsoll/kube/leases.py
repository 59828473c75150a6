"""Reads, creates and replaces one Lease (coordination.k8s.io/v1)."""

from collections.abc import Mapping
from datetime import UTC, datetime

from kubernetes_asyncio import client

from plimsoll.kube.session.errors import APIError, NotFound, answer_of
from plimsoll.kube.session.session import Session
from plimsoll.kube.session.typed_client import TypedClient
from plimsoll.ports.leases import Lease
from plimsoll.ports.writes import WriteOutcome, WriteResult

API = "coordination.k8s.io/v1"

#: The annotation by which a replica asks the holder for a lease. The API's own field, ``preferredHolder``, is
#: behind a feature gate and for coordinated elections.
WANTED_BY = "plimsoll.dev/wanted-by"


class LeaseStore:
    """One Lease.

    Args:
        session: A connection of its own: renewals must not wait for other requests, nor pass the fence.
        timeout_s: Seconds that a request may take.
    """

    def __init__(self, session: Session, namespace: str, name: str, timeout_s: float) -> None:
        self._client = TypedClient(session)
        self._leases = client.CoordinationV1Api(self._client)
        self._namespace = namespace
        self._name = name
        self._timeout_s = timeout_s

    @property
    def reference(self) -> Mapping[str, str]:
        """A reference to the lease."""
        return {"apiVersion": API, "kind": "Lease", "namespace": self._namespace, "name": self._name}

    async def read(self) -> tuple[WriteResult, Lease | None]:
        """The lease; None with DONE when it does not exist."""
        try:
            found = await self._leases.read_namespaced_lease(
                self._name, self._namespace, _request_timeout=self._timeout_s
            )
        except NotFound:
            return WriteResult(WriteOutcome.DONE), None
        except APIError as exc:
            return answer_of(exc), None
        return WriteResult(WriteOutcome.DONE), self._lease(found)

    async def write(self, lease: Lease) -> tuple[WriteResult, Lease | None]:
        """Create it, or replace the version that it names."""
        body = self._document(lease)
        try:
            if lease.version:
                stored = await self._leases.replace_namespaced_lease(
                    self._name, self._namespace, body, _request_timeout=self._timeout_s
                )
            else:
                stored = await self._leases.create_namespaced_lease(
                    self._namespace, body, _request_timeout=self._timeout_s
                )
        except APIError as exc:
            return answer_of(exc), None
        return WriteResult(WriteOutcome.DONE), self._lease(stored)

    def _document(self, lease: Lease) -> client.V1Lease:
        metadata = {**lease.metadata, "namespace": self._namespace, "name": self._name}
        if lease.version:
            metadata["resourceVersion"] = lease.version
        annotations = {**metadata.pop("annotations", {})}
        annotations.pop(WANTED_BY, None)
        if lease.wanted_by:
            annotations[WANTED_BY] = lease.wanted_by
        if annotations:
            metadata["annotations"] = annotations
        return client.V1Lease(
            api_version=API,
            kind="Lease",
            metadata=metadata,  # type: ignore[arg-type] # the client sends a mapping as it is
            spec=client.V1LeaseSpec(
                holder_identity=lease.holder or None,
                lease_duration_seconds=lease.duration_s,
                acquire_time=_moment(lease.acquired),
                renew_time=_moment(lease.renewed),
                lease_transitions=lease.transitions,
            ),
        )

    def _lease(self, found: client.V1Lease) -> Lease:
        """A lease as the server has it; missing fields are empty or zero."""
        spec: client.V1LeaseSpec | None = found.spec  # the stub says that there always is one
        spec = client.V1LeaseSpec() if spec is None else spec
        metadata = self._client.sanitize_for_serialization(found.metadata) or {}
        metadata.pop("managedFields", None)
        return Lease(
            holder=spec.holder_identity or "",
            duration_s=spec.lease_duration_seconds or 0,
            acquired=_seconds(spec.acquire_time),
            renewed=_seconds(spec.renew_time),
            transitions=spec.lease_transitions or 0,
            version=metadata.get("resourceVersion", ""),
            metadata=metadata,
            wanted_by=(metadata.get("annotations") or {}).get(WANTED_BY, ""),
        )


def _moment(seconds: float) -> datetime:
    """A time with microseconds: the client leaves out 0, and the server refuses a MicroTime without."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.replace(microsecond=moment.microsecond or 1)


def _seconds(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()
