"""Fakes of services around decisions: extenders, usage, rights, leases, policy status."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from plimsoll.access.rights import Right
from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.ports.extenders import Endpoint, Reply
from plimsoll.ports.leases import Lease
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.fakes.pod_writes import DONE


class FakeExtenders:
    """Extenders whose responses a test sets.

    Attributes:
        asked: Verb and body of each request, in order.
        answers: Responses by verb; a function is called with the body, and an awaitable is awaited.
        retained: The endpoints passed to the last ``retain``.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self.retained: frozenset[Endpoint] = frozenset()

    def problem_of(self, endpoint: Endpoint) -> str:
        """Report certificates that declare themselves bad."""
        return "the certificates cannot be used" if endpoint.tls.ca_data == "bad" else ""

    async def post(self, endpoint: Endpoint, verb: str, body: bytes) -> Reply:  # noqa: ARG002 - the port's signature
        """The response that the test has set; a text is the reason for a missing response."""
        document = msgspec.json.decode(body)
        self.asked.append((verb, document))
        answer = self.answers[verb]
        if callable(answer):
            answer = answer(document)
        if inspect.isawaitable(answer):
            answer = await answer
        return Reply(None, answer) if isinstance(answer, str) else Reply(msgspec.json.encode(answer))

    async def retain(self, endpoints: Collection[Endpoint]) -> None:
        """Record the endpoints."""
        self.retained = frozenset(endpoints)


class FakeMeter:
    """Returns the usage that a test sets.

    Attributes:
        answer: Result of every request.
        node_readings: Usage of nodes.
        pod_readings: Usage of pods.
        samples: Result of a query.
        vectors: Results of particular queries instead.
        asked: Queries, with their destinations.
    """

    def __init__(self) -> None:
        self.answer = DONE
        self.node_readings: list[UsageReading] = []
        self.pod_readings: list[UsageReading] = []
        self.samples: list[Sample] = []
        self.vectors: dict[str, list[Sample]] = {}
        self.asked: list[tuple[str, str]] = []

    async def nodes(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """The node readings."""
        return self.answer, self.node_readings if self.answer.is_done else ()

    async def pods(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """The pod readings."""
        return self.answer, self.pod_readings if self.answer.is_done else ()

    async def query(
        self, server: PrometheusProviderSpec, queries: Sequence[str]
    ) -> Sequence[tuple[WriteResult, Sequence[Sample]]]:
        """The samples or vectors."""
        self.asked += [(server.url, query) for query in queries]
        return [
            (self.answer, self.vectors.get(query, self.samples) if self.answer.is_done else ())
            for query in queries
        ]


class FakeAccessReviewer:
    """Allows every right that is not denied.

    Attributes:
        denied: Rights that are denied in all namespaces.
        granted: Denied rights that are granted in one namespace, with its name.
        is_silent: Whether no response arrives.
        asked: The reviewed rights, in order.
    """

    def __init__(self, *denied: Right) -> None:
        self.denied = set(denied)
        self.granted: set[tuple[Right, str]] = set()
        self.is_silent = False
        self.asked: list[tuple[Right, str]] = []

    async def review(self, right: Right, namespace: str) -> bool | None:
        """Whether the right is allowed."""
        self.asked.append((right, namespace))
        if self.is_silent:
            return None
        return right not in self.denied or (right, namespace) in self.granted


class FakeLeases:
    """Keeps one lease in memory; a write that names its current version may replace it.

    Attributes:
        lease: The stored lease, None before the first write.
        trouble: The result of the next requests; None lets them succeed.
        before: Awaited before each response.
    """

    reference: Mapping[str, str] = {"kind": "Lease", "namespace": "kube-system", "name": "plimsoll"}

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease
        self.trouble: WriteResult | None = None
        self.before: Callable[[], Awaitable[None]] | None = None
        self._version = 100

    async def read(self) -> tuple[WriteResult, Lease | None]:
        """Read the lease."""
        if self.before is not None:
            await self.before()
        return (self.trouble, None) if self.trouble else (DONE, self.lease)

    async def write(self, lease: Lease) -> tuple[WriteResult, Lease | None]:
        """Store the lease, if its version is the latest."""
        if self.before is not None:
            await self.before()
        if self.trouble:
            return self.trouble, None
        if lease.version != (self.lease.version if self.lease else ""):
            return WriteResult(WriteOutcome.CONFLICT, "the lease has been modified"), None
        self._version += 1
        self.lease = msgspec.structs.replace(lease, version=str(self._version))
        return DONE, self.lease


class FakeNamespacedStatuses:
    """Keeps the statuses of namespaced objects, by ``namespace/name``, in the order of the writes."""

    def __init__(self) -> None:
        self.written: list[tuple[str, Mapping[str, Any]]] = []

    async def write_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Keep the status."""
        self.written.append((f"{namespace}/{name}", status))
        return DONE


class FakePolicyStatuses:
    """Keeps the merged statuses of policies, keyed by name."""

    def __init__(self) -> None:
        self.statuses: dict[str, dict[str, Any]] = {}

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge the status."""
        self.statuses.setdefault(name, {}).update(status)
        return DONE
