"""Writes the Lease of the leader election (coordination.k8s.io/v1): reads, creates and replaces it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from plimsoll.kube.session.errors import APIError, NotFound, Unavailable, answer_of
from plimsoll.kube.session.session import Session
from plimsoll.model.decoding import read_with
from plimsoll.ports.leases import Lease, LeaseNote
from plimsoll.ports.writes import WriteOutcome, WriteResult

API = "coordination.k8s.io/v1"
GROUP = f"/apis/{API}"

#: The annotation with the pod whose attempt has been under way since an earlier renewal.
IN_WORK = "plimsoll.dev/in-work"


_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_Count = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: _Count | None = None
    acquire_time: _Moment | None = None
    renew_time: _Moment | None = None
    lease_transitions: _Count | None = None


class _Document(msgspec.Struct):
    metadata: dict[str, Any]
    spec: _Spec | None = None


_DOCUMENT = msgspec.json.Decoder(_Document)


#: The latest time that can be written, in seconds since the epoch.
LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


class LeaseStore:
    """Stores one Lease.

    Args:
        session: Has its own connection: renewals must neither wait for other requests nor pass the fence.
        timeout_s: Timeout of a request in seconds.
        work: Written into the lease, and read from that of an earlier holder; None for neither.
    """

    def __init__(
        self,
        session: Session,
        namespace: str,
        name: str,
        timeout_s: float,
        work: LeaseNote | None = None,
    ) -> None:
        self._session = session
        self._namespace = namespace
        self._name = name
        self._collection = f"{GROUP}/namespaces/{namespace}/leases"
        self._timeout_s = timeout_s
        self._work = work

    @property
    def reference(self) -> Mapping[str, str]:
        """A reference to the lease."""
        return {"apiVersion": API, "kind": "Lease", "namespace": self._namespace, "name": self._name}

    async def read(self) -> tuple[WriteResult, Lease | None]:
        """The lease; None with DONE when it does not exist."""
        try:
            lease = await self._exchange("GET", f"/{self._name}")
        except NotFound:
            return WriteResult(WriteOutcome.DONE), None
        except APIError as exc:
            return answer_of(exc), None
        if self._work is not None:
            self._work.found(_annotation(lease.metadata, IN_WORK))
        return WriteResult(WriteOutcome.DONE), lease

    async def write(self, lease: Lease) -> tuple[WriteResult, Lease | None]:
        """Create the lease, or replace the version that it names."""
        method, path = ("PUT", f"/{self._name}") if lease.version else ("POST", "")
        try:
            stored = await self._exchange(method, path, self._document(lease))
        except APIError as exc:
            return answer_of(exc), None
        return WriteResult(WriteOutcome.DONE), stored

    async def _exchange(self, method: str, path: str, body: Any = None) -> Lease:
        path = self._collection + path
        answer = await self._session.request(method, path, body, timeout_s=self._timeout_s)
        try:
            return _lease(read_with(_DOCUMENT, answer))
        except msgspec.MsgspecError as exc:
            message = f"the answer cannot be read: {exc}"
            raise Unavailable(f"{method} {path}", message=message) from exc

    def _document(self, lease: Lease) -> dict[str, Any]:
        metadata = {**lease.metadata, "namespace": self._namespace, "name": self._name}
        if lease.version:
            metadata["resourceVersion"] = lease.version
        given = metadata.pop("annotations", None)
        annotations = dict(given) if isinstance(given, dict) else {}
        in_work = "" if self._work is None or not lease.holder else self._work.noted()
        annotations.pop(IN_WORK, None)
        if in_work:
            annotations[IN_WORK] = in_work
        if annotations:
            metadata["annotations"] = annotations
        spec = {
            "leaseDurationSeconds": lease.duration_s,
            "acquireTime": _moment(lease.acquired),
            "renewTime": _moment(lease.renewed),
            "leaseTransitions": lease.transitions,
        }
        if lease.holder:
            spec["holderIdentity"] = lease.holder
        return {"apiVersion": API, "kind": "Lease", "metadata": metadata, "spec": spec}


def _lease(found: _Document) -> Lease:
    """A lease from the server's document; missing fields are empty or zero."""
    spec, metadata = found.spec or _Spec(), found.metadata
    metadata.pop("managedFields", None)
    return Lease(
        holder=spec.holder_identity or "",
        duration_s=spec.lease_duration_seconds or 0,
        acquired=_seconds(spec.acquire_time),
        renewed=_seconds(spec.renew_time),
        transitions=spec.lease_transitions or 0,
        version=str(metadata.get("resourceVersion", "")),
        metadata=metadata,
    )


def _annotation(metadata: Mapping[str, Any], key: str) -> str:
    """The value of an annotation, "" without one."""
    annotations = metadata.get("annotations")
    return str(annotations.get(key, "")) if isinstance(annotations, dict) else ""


def _moment(seconds: float) -> str:
    """The time as a MicroTime: the server rejects one without a fraction."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _seconds(moment: datetime | None) -> float:
    return 0.0 if moment is None else min(max(0.0, moment.timestamp()), LATEST)
