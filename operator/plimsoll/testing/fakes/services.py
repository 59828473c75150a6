"""Fakes of what surrounds decisions: extenders, usage, rights, leases, policy status."""

import dataclasses
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
from plimsoll.testing.fakes.pods import DONE


class FakeExtenders:
    """Extenders that answer what a test tells.

    Attributes:
        asked: Verb and body of each ask, in order.
        answers: What to answer, by verb; a function is called with the body, and awaited when it can be.
        retained: The endpoints that were to be kept last.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self.retained: frozenset[Endpoint] = frozenset()

    def problem_of(self, endpoint: Endpoint) -> str:
        """Certificates that say so are bad."""
        return "the certificates cannot be used" if endpoint.tls.ca_data == "bad" else ""

    async def post(self, endpoint: Endpoint, verb: str, body: bytes) -> Reply:  # noqa: ARG002 - the port's signature
        """What the test told; a text is why there is no answer."""
        document = msgspec.json.decode(body)
        self.asked.append((verb, document))
        answer = self.answers[verb]
        if callable(answer):
            answer = answer(document)
        if inspect.isawaitable(answer):
            answer = await answer
        return Reply(None, answer) if isinstance(answer, str) else Reply(msgspec.json.encode(answer))

    async def retain(self, endpoints: Collection[Endpoint]) -> None:
        """Keep which."""
        self.retained = frozenset(endpoints)


class FakeMeter:
    """Reads what it was given.

    Attributes:
        answer: To every question.
        node_readings: What nodes use.
        pod_readings: What pods use.
        samples: What a query returns.
        vectors: What certain queries return instead.
        asked: Queries, with where they went.
    """

    def __init__(self) -> None:
        self.answer = DONE
        self.node_readings: list[UsageReading] = []
        self.pod_readings: list[UsageReading] = []
        self.samples: list[Sample] = []
        self.vectors: dict[str, list[Sample]] = {}
        self.asked: list[tuple[str, str]] = []

    async def nodes(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """As given."""
        return self.answer, self.node_readings if self.answer.is_done else ()

    async def pods(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """As given."""
        return self.answer, self.pod_readings if self.answer.is_done else ()

    async def query(
        self, server: PrometheusProviderSpec, queries: Sequence[str]
    ) -> Sequence[tuple[WriteResult, Sequence[Sample]]]:
        """As given."""
        self.asked += [(server.url, query) for query in queries]
        return [
            (self.answer, self.vectors.get(query, self.samples) if self.answer.is_done else ())
            for query in queries
        ]


class FakeAccessReviewer:
    """Allows everything but what is denied.

    Attributes:
        denied: Rights that are denied in all namespaces.
        granted: Rights that are granted in one namespace all the same, with its name.
        is_silent: Whether no answer comes.
        asked: What was reviewed, in order.
    """

    def __init__(self, *denied: Right) -> None:
        self.denied = set(denied)
        self.granted: set[tuple[Right, str]] = set()
        self.is_silent = False
        self.asked: list[tuple[Right, str]] = []

    async def review(self, right: Right, namespace: str) -> bool | None:
        """Whether it is allowed."""
        self.asked.append((right, namespace))
        if self.is_silent:
            return None
        return right not in self.denied or (right, namespace) in self.granted


class FakeLeases:
    """One lease in memory; who names its version may replace it.

    Attributes:
        lease: As it is stored, None before.
        trouble: The result of the next requests; None answers them.
        before: Awaited before each answer.
    """

    reference: Mapping[str, str] = {"kind": "Lease", "namespace": "kube-system", "name": "plimsoll"}

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease
        self.trouble: WriteResult | None = None
        self.before: Callable[[], Awaitable[None]] | None = None
        self._version = 100

    async def read(self) -> tuple[WriteResult, Lease | None]:
        """The lease."""
        if self.before is not None:
            await self.before()
        return (self.trouble, None) if self.trouble else (DONE, self.lease)

    async def write(self, lease: Lease) -> tuple[WriteResult, Lease | None]:
        """Keep it, if its version is the latest."""
        if self.before is not None:
            await self.before()
        if self.trouble:
            return self.trouble, None
        if lease.version != (self.lease.version if self.lease else ""):
            return WriteResult(WriteOutcome.CONFLICT, "the lease has been modified"), None
        self._version += 1
        self.lease = dataclasses.replace(lease, version=str(self._version))
        return DONE, self.lease


class FakePolicyStatuses:
    """Keeps the statuses of policies, merged, keyed by name."""

    def __init__(self) -> None:
        self.statuses: dict[str, dict[str, Any]] = {}

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge."""
        self.statuses.setdefault(name, {}).update(status)
        return DONE
