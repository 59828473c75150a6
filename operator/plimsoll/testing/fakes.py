"""The ports of :mod:`plimsoll.ports`, faked: time that a test moves, an API server that obeys.

A fake does what a well-behaved world would do and keeps what it was asked; a test sets the answer it wants.
"""

import asyncio
import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from plimsoll.access.rights import Right
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.model.kinds.deployment import SURGED, Deployment
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.ports.events import EventNote
from plimsoll.ports.eviction_requests import EvictionRequest
from plimsoll.ports.extenders import Endpoint, Reply
from plimsoll.ports.leases import Lease
from plimsoll.ports.observer import Observer
from plimsoll.ports.pods import ConditionUpdate
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer

T = TypeVar("T")

DONE = WriteResult(WriteOutcome.DONE)


class FakeClock:
    """Time that stands still until it is moved."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.time = now
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.time

    def monotonic(self) -> float:
        """The same seconds."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Wait until somebody moves the time that far."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.time + seconds, over))
        await over

    async def advance(self, seconds: float) -> None:
        """Move the time, wake who slept until then, and let all tasks settle."""
        await settled()
        until = self.time + seconds
        while due := sorted(each for each, over in self._sleepers if each <= until and not over.done()):
            self.time = max(self.time, due[0])
            for each, over in self._sleepers:
                if each <= self.time and not over.done():
                    over.set_result(None)
            self._sleepers = [(each, over) for each, over in self._sleepers if not over.done()]
            await settled()
        self.time = until
        await settled()


def a_book(cache: Cache) -> ReservationBook:
    """A reservation book without a running timer: reservations end when they are released."""
    return ReservationBook(cache, Timer(FakeClock(), Observer()))


async def settled() -> None:
    """Let every task run until it waits for something that only the test can do."""
    for _ in range(50):
        await asyncio.sleep(0)


class FakeBinder:
    """Takes every binding unless told otherwise.

    Attributes:
        bound: Pod key to node, in the order of the bindings.
        answer: What the next bindings are told.
        before: Awaited before each answer.
        answers: What the next bindings are told, one each, ahead of ``answer``.
        deaf: How many bindings happen although the answer says UNKNOWN.
        sent: How many bindings were asked for.
        looks: What the next looks at a pod are told, one each; the truth when there is none left.
    """

    def __init__(self, answer: WriteResult = DONE) -> None:
        self.bound: dict[str, str] = {}
        self.answer = answer
        self.before: Callable[[Pod, str], Awaitable[None]] | None = None
        self.answers: list[WriteResult] = []
        self.looks: list[WriteResult] = []
        self.sent = 0
        self.deaf = 0

    async def bind(self, pod: Pod, node: str) -> WriteResult:
        """Keep the binding when it is taken."""
        self.sent += 1
        if self.before is not None:
            await self.before(pod, node)
        key = f"{pod.namespace}/{pod.name}"
        if key in self.bound:
            return WriteResult(
                WriteOutcome.CONFLICT, f"pod {pod.name} is already assigned to node {self.bound[key]}"
            )
        if self.deaf:
            self.deaf -= 1
            self.bound[key] = node
            return WriteResult(WriteOutcome.UNKNOWN, "no answer")
        answer = self.answers.pop(0) if self.answers else self.answer
        if answer.is_done:
            self.bound[key] = node
        return answer

    async def node_of(self, pod: Pod) -> tuple[WriteResult, str]:
        """The truth, unless told otherwise."""
        answer = self.looks.pop(0) if self.looks else DONE
        return answer, self.bound.get(f"{pod.namespace}/{pod.name}", "") if answer.is_done else ""


class FakeVolumes:
    """Keeps what is written about claims and volumes.

    Attributes:
        selected: Claim name to node.
        reserved: Volume name to claim name.
        answer: What the next writes are told.
    """

    def __init__(self, answer: WriteResult = DONE) -> None:
        self.selected: dict[str, str] = {}
        self.reserved: dict[str, str] = {}
        self.answer = answer

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> WriteResult:
        """Keep the node."""
        if self.answer.is_done:
            self.selected[claim.metadata.name] = node
        return self.answer

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> WriteResult:
        """Keep the claim's name."""
        if self.answer.is_done:
            self.reserved[volume.name] = claim.metadata.name
        return self.answer


class FakePreemptor:
    """Removes victims at once.

    Attributes:
        victims: Names of the pods that were removed.
        cleared: Names of the pods whose nomination was taken away.
        answers: What the next removals are told, one each; DONE when there is none left.
        before: Awaited before each removal.
    """

    def __init__(self, *answers: WriteResult) -> None:
        self.answers = list(answers)
        self.before: Callable[[Pod], Awaitable[None]] | None = None
        self.victims: list[str] = []
        self.cleared: list[str] = []

    async def preempt(self, victim: Pod, scheduler: str) -> WriteResult:  # noqa: ARG002 - the port's signature
        """Keep the victim's name."""
        if self.before is not None:
            await self.before(victim)
        answer = self.answers.pop(0) if self.answers else DONE
        if answer.is_done:
            self.victims.append(victim.name)
        return answer

    async def clear_nomination(self, pod: Pod) -> WriteResult:
        """Keep the pod's name."""
        self.cleared.append(pod.name)
        return DONE


class FakeStatuses:
    """Keeps what is written about pods.

    Attributes:
        conditions: Pod name to its latest ``PodScheduled`` condition.
        nominated: Pod name to nominated node.
    """

    def __init__(self) -> None:
        self.conditions: dict[str, ConditionUpdate] = {}
        self.nominated: dict[str, str] = {}

    async def write_condition(self, pod: Pod, condition: ConditionUpdate) -> WriteResult:
        """Keep the condition."""
        self.conditions[pod.name] = condition
        if condition.nominated_node is not None:
            self.nominated[pod.name] = condition.nominated_node
        return DONE

    async def nominate(self, pod: Pod, node: str) -> WriteResult:
        """Keep the nomination."""
        self.nominated[pod.name] = node
        return DONE


class FakePods:
    """Pods as an API server has them: what their models say."""

    def __init__(self) -> None:
        self.answer = DONE

    async def read(self, pod: Pod) -> tuple[WriteResult, bytes]:
        """The model as JSON."""
        return self.answer, msgspec.json.encode(pod)


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


class FakeRecorder:
    """Keeps events, oldest first, in ``notes``."""

    def __init__(self) -> None:
        self.notes: list[EventNote] = []

    def record(self, note: EventNote) -> None:
        """Keep the event."""
        self.notes.append(note)

    def said(self, reason: str) -> list[str]:
        """The sentences of one reason."""
        return [note.text for note in self.notes if note.reason == reason]


class FakeRandomness:
    """Random numbers that always are the least."""

    def below(self, n: int) -> int:
        """0."""
        assert n > 0
        return 0

    def fraction(self) -> float:
        """0."""
        return 0.0


class InlineComputer:
    """Computes at once."""

    async def compute(self, function: Callable[[], T]) -> T:
        """The function's result."""
        return function()


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


class FakeEvictor:
    """Takes every eviction unless told otherwise.

    Attributes:
        evicted: Names of the pods that were evicted, in order.
        answers: What the next evictions are told, one each; DONE when there is none left.
        when_done: Called with each pod whose eviction was taken.
    """

    def __init__(self, *answers: WriteResult) -> None:
        self.evicted: list[str] = []
        self.answers = list(answers)
        self.when_done: Callable[[Pod], None] = lambda _: None

    async def evict(self, pod: Pod) -> WriteResult:
        """Keep the name of a pod that goes."""
        answer = self.answers.pop(0) if self.answers else DONE
        if answer.is_done:
            self.evicted.append(pod.name)
            self.when_done(pod)
        return answer


class FakeEvictionRequester:
    """Keeps EvictionRequests; a test says what becomes of them.

    Attributes:
        requests: Ours, by ``namespace/name``; ``become`` and ``vanish`` change them.
        answers: What the next creations are told, one each; DONE when there is none left.
        dropped: Names of requests that were deleted, in order.
    """

    def __init__(self) -> None:
        self.requests: dict[str, EvictionRequest] = {}
        self.answers: list[WriteResult] = []
        self.dropped: list[str] = []
        self._offer = DONE
        self._changed = Signal()

    @property
    def offer(self) -> WriteResult:
        """What is said of the API."""
        return self._offer

    @offer.setter
    def offer(self, answer: WriteResult) -> None:
        self._offer = answer
        self._changed.notify()

    async def offered(self) -> WriteResult:
        """As told."""
        return self.offer

    async def request(self, pod: Pod, name: str) -> WriteResult:
        """Keep a request."""
        answer = self.answers.pop(0) if self.answers else self.offer
        if answer.is_done:
            made = EvictionRequest(pod.namespace, name, pod.uid)
            self.requests.setdefault(made.key, made)
            self._changed.notify()
        return answer

    async def withdraw(self, request: EvictionRequest) -> WriteResult:
        """The request asks for nothing any more."""
        if request.key not in self.requests:
            return WriteResult(WriteOutcome.GONE, "not found")
        self.become(request.key, is_withdrawn=True)
        return DONE

    async def drop(self, request: EvictionRequest) -> WriteResult:
        """Delete a request."""
        if request.key not in self.requests:
            return WriteResult(WriteOutcome.GONE, "not found")
        self.vanish(request.key)
        self.dropped.append(request.name)
        return DONE

    async def list(self) -> tuple[WriteResult, Sequence[EvictionRequest]]:
        """All of them."""
        return self.offer, list(self.requests.values()) if self.offer.is_done else ()

    async def watch(self, changed: Callable[[Mapping[str, EvictionRequest | None]], None]) -> WriteResult:
        """Report them and their changes while the API can be spoken to."""
        reported: dict[str, EvictionRequest] = {}
        seen = self._changed.count
        while self.offer.verdict is not WriteOutcome.GONE:
            if self.offer.is_done:
                present = dict(self.requests)
                news: dict[str, EvictionRequest | None] = {
                    key: each for key, each in present.items() if reported.get(key) != each
                }
                news.update(dict.fromkeys(reported.keys() - present.keys()))
                reported = present
                if news:
                    changed(news)
            seen = await self._changed.wait(seen)
        return self.offer

    def become(self, key: str, **changes: Any) -> None:
        """A request stands otherwise now, such as ``is_observed=True``."""
        self.requests[key] = replace(self.requests[key], **changes)
        self._changed.notify()

    def vanish(self, key: str) -> None:
        """Somebody deletes a request."""
        del self.requests[key]
        self._changed.notify()


class FakeMeter:
    """Reads what it was given.

    Attributes:
        answer: To every question.
        node_readings: What nodes use.
        pod_readings: What pods use.
        samples: What a query returns.
        asked: Queries, with where they went.
    """

    def __init__(self) -> None:
        self.answer = DONE
        self.node_readings: list[UsageReading] = []
        self.pod_readings: list[UsageReading] = []
        self.samples: list[Sample] = []
        self.asked: list[tuple[str, str]] = []

    async def nodes(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """As given."""
        return self.answer, self.node_readings if self.answer.is_done else ()

    async def pods(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """As given."""
        return self.answer, self.pod_readings if self.answer.is_done else ()

    async def query(self, url: str, promql: str) -> tuple[WriteResult, Sequence[Sample]]:
        """As given."""
        self.asked.append((url, promql))
        return self.answer, self.samples if self.answer.is_done else ()


class FakeNodeCloser:
    """Obeys at once.

    Attributes:
        done: What was asked for, in order: ``("close", node)`` or ``("reopen", node)``.
        answer: What the next writes are told.
        when_done: Told each write that was taken.
    """

    def __init__(self, answer: WriteResult = DONE) -> None:
        self.done: list[tuple[str, str]] = []
        self.answer = answer
        self.when_done: Callable[[str, str], None] = lambda _verb, _node: None

    async def close(self, node: str) -> WriteResult:
        """Close a node."""
        return self._do("close", node)

    async def reopen(self, node: str) -> WriteResult:
        """Open a node."""
        return self._do("reopen", node)

    def _do(self, verb: str, node: str) -> WriteResult:
        if self.answer.is_done:
            self.done.append((verb, node))
            self.when_done(verb, node)
        return self.answer


class FakeRollouts:
    """Deployments in memory; a mark is a new generation, as a template's change is.

    Attributes:
        by_name: The Deployments, by name.
        marks: What was written, in order.
        answers: What the next marks are told, one each; DONE when there is none left.
        reading: What reads and lists are told.
        when_marked: Called with the name and the mark of each Deployment that was marked.
    """

    def __init__(self, *deployments: Deployment) -> None:
        self.by_name = {each.metadata.name: each for each in deployments}
        self.marks: list[str | None] = []
        self.answers: list[WriteResult] = []
        self.reading = DONE
        self.when_marked: Callable[[str, str | None], None] = lambda _name, _mark: None

    async def list(self) -> tuple[WriteResult, Sequence[Deployment]]:
        """All of them."""
        return self.reading, list(self.by_name.values()) if self.reading.is_done else ()

    async def read(self, namespace: str, name: str) -> tuple[WriteResult, Deployment | None]:
        """One of them."""
        if not self.reading.is_done:
            return self.reading, None
        found = self.by_name.get(name)
        if found is None or found.metadata.namespace != namespace:
            return WriteResult(WriteOutcome.GONE, f'deployments.apps "{name}" not found'), None
        return DONE, found

    async def mark(self, deployment: Deployment, mark: str | None) -> WriteResult:
        """Write it, unless the version is an old one or the test says otherwise."""
        answer = self.answers.pop(0) if self.answers else DONE
        present = self.by_name[deployment.metadata.name]
        if answer.is_done and present.metadata.resource_version != deployment.metadata.resource_version:
            answer = WriteResult(WriteOutcome.CONFLICT, "the object has been modified")
        if answer.is_done:
            self.do_mark(deployment.metadata.name, mark)
        return answer

    def do_mark(self, name: str, mark: str | None) -> None:
        """What a mark does, whatever its writer is told."""
        self.change(name, SURGED, mark)
        self.marks.append(mark)
        self.when_marked(name, mark)

    def roll_out(self, name: str) -> None:
        """The controller has done all that the spec asks for."""
        present = self.by_name[name]
        status = msgspec.structs.replace(present.status, observed_generation=present.metadata.generation)
        self.by_name[name] = msgspec.structs.replace(present, status=status)

    def change(self, name: str, annotation: str, value: str | None) -> None:
        """Somebody changes an annotation of the template."""
        present = self.by_name[name]
        template = dict(present.spec.template)
        metadata = dict(template.get("metadata") or {})
        annotations = {**(metadata.get("annotations") or {}), annotation: value}
        kept = {key: each for key, each in annotations.items() if each is not None}
        template["metadata"] = {**metadata, "annotations": kept}
        generation = present.metadata.generation + 1
        self.by_name[name] = msgspec.structs.replace(
            present,
            metadata=msgspec.structs.replace(
                present.metadata, generation=generation, resource_version=str(generation)
            ),
            spec=msgspec.structs.replace(present.spec, template=template),
        )


class FakeRecords:
    """Eviction records in memory.

    Attributes:
        documents: By ``namespace/name``.
        history: Phases by record name, in the order written.
        created_at: ``metadata.creationTimestamp`` of new records.
        answer: What writes are told.
    """

    def __init__(self, *documents: Mapping[str, Any]) -> None:
        self.documents: dict[str, dict[str, Any]] = {
            f"{each['metadata']['namespace']}/{each['metadata']['name']}": dict(each) for each in documents
        }
        self.history: dict[str, list[str]] = {}
        self.created_at = "2026-01-01T00:00:00Z"
        self.answer = DONE

    async def create(self, document: Mapping[str, Any]) -> WriteResult:
        """Keep a new record."""
        metadata = document["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        if not self.answer.is_done:
            return self.answer
        if key in self.documents:
            return WriteResult(WriteOutcome.CONFLICT, f"{key} exists already")
        stamped = {**metadata, "creationTimestamp": self.created_at}
        self.documents[key] = {**document, "metadata": stamped}
        self._note(metadata["name"], document.get("status") or {})
        return DONE

    async def write_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Replace a status."""
        document = self.documents.get(f"{namespace}/{name}")
        if not self.answer.is_done:
            return self.answer
        if document is None:
            return WriteResult(WriteOutcome.GONE, f"there is no record {namespace}/{name}")
        document["status"] = dict(status)
        self._note(name, status)
        return DONE

    async def delete(self, namespace: str, name: str) -> WriteResult:
        """Drop a record."""
        if self.documents.pop(f"{namespace}/{name}", None) is None:
            return WriteResult(WriteOutcome.GONE, f"there is no record {namespace}/{name}")
        return DONE

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """All of them."""
        return self.answer, list(self.documents.values())

    def _note(self, name: str, status: Mapping[str, Any]) -> None:
        self.history.setdefault(name, []).append(str(status.get("phase")))


class FakeLeases:
    """One lease in memory; who names its version may replace it.

    Attributes:
        lease: As it is stored, None before.
        trouble: What the next requests are told instead; None answers them.
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
    """Keeps what is written about policies, merged, in ``statuses`` by name."""

    def __init__(self) -> None:
        self.statuses: dict[str, dict[str, Any]] = {}

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge."""
        self.statuses.setdefault(name, {}).update(status)
        return DONE


class RememberingObserver(Observer):
    """Remembers what broke or was left out.

    Attributes:
        skipped: Names of objects that could not be read, and why.
        failures: Where something broke and was contained, and what.
        heard: Of which collection the server told something, in order.
        runs: Policy, result and seconds of each run that has ended.
    """

    def __init__(self) -> None:
        self.skipped: list[tuple[str, str]] = []
        self.failures: list[tuple[str, str]] = []
        self.heard: list[str] = []
        self.runs: list[tuple[str, str, float]] = []

    def run_finished(self, policy: str, result: str, seconds: float) -> None:
        """Keep it."""
        self.runs.append((policy, result, seconds))

    def watch_heard(self, resource: str, now: float) -> None:  # noqa: ARG002 - the hook's signature
        """Keep the name."""
        self.heard.append(resource)

    def object_skipped(self, resource: str, name: str, problem: str) -> None:  # noqa: ARG002 - the hook's signature
        """Keep the name."""
        self.skipped.append((name, problem))

    def failed(self, where: str, problem: str) -> None:
        """Keep it."""
        self.failures.append((where, problem))
