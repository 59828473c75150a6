"""What the control loops need of the world, as protocols: values in, values out.

Adapters implement them for a real API server, :mod:`plimsoll.testing.fakes` for tests, and later a
simulation for all of it with faults by seed. An expected refusal is a value, never an exception.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from plimsoll.framework.descheduling.context import Sample
from plimsoll.leadership.election import Lease
from plimsoll.model.kinds.deployment import Deployment
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim

T = TypeVar("T")


class Clock(Protocol):
    """Time."""

    def now(self) -> float:
        """Seconds since the epoch; for what is written down."""

    def monotonic(self) -> float:
        """Seconds that never go back; for measuring and waiting."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class Randomness(Protocol):
    """Dice."""

    def below(self, n: int) -> int:
        """A number in 0..n-1."""

    def fraction(self) -> float:
        """A number in 0..1."""


class Computer(Protocol):
    """Does long computations beside the event loop."""

    async def compute(self, function: Callable[[], T]) -> T:
        """The function's result; it must touch nothing that others change."""


class Verdict(StrEnum):
    """How the API server took a write."""

    DONE = "done"
    CONFLICT = "conflict"  #: somebody was faster, or the object is another one by now
    GONE = "gone"  #: the object does not exist any more
    BLOCKED = "blocked"  #: a PodDisruptionBudget says no
    BUSY = "busy"  #: too many requests; later
    REFUSED = "refused"  #: invalid, or not allowed: trying again is useless
    UNKNOWN = "unknown"  #: no usable answer; it may have happened
    FENCED = "fenced"  #: not sent: this process does not lead


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one write.

    Attributes:
        verdict: How it was taken.
        message: The server's sentence, empty when done.
        budget: The PodDisruptionBudget that blocked it, as ``namespace/name``.
        retry_after_s: When the server says to come back, 0 when it does not.
    """

    verdict: Verdict
    message: str = ""
    budget: str = ""
    retry_after_s: float = 0.0

    @property
    def is_done(self) -> bool:
        """Whether it happened."""
        return self.verdict is Verdict.DONE

    @property
    def status(self) -> int:
        """The HTTP status that such an answer has, 0 for none."""
        return _STATUSES.get(self.verdict, 0)


_STATUSES = {Verdict.GONE: 404, Verdict.CONFLICT: 409, Verdict.BUSY: 429, Verdict.REFUSED: 403}


class Binder(Protocol):
    """Binds pods."""

    async def bind(self, pod: Pod, node: str) -> Answer:
        """POST the binding, for this very pod (by uid)."""

    async def node_of(self, pod: Pod) -> tuple[Answer, str]:
        """The node that this very pod has, "" for none; GONE when there is no such pod any more."""


class Evictor(Protocol):
    """Evicts pods."""

    async def evict(self, pod: Pod) -> Answer:
        """POST the eviction, for this very pod (by uid)."""


class Rollouts(Protocol):
    """Deployments, and the mark in their pod template."""

    async def list(self) -> tuple[Answer, Sequence[Deployment]]:
        """All of them; those that want other than one replica may come without their template."""

    async def read(self, namespace: str, name: str) -> tuple[Answer, Deployment | None]:
        """One as it is; None with GONE when there is none."""

    async def mark(self, deployment: Deployment, mark: str | None) -> Answer:
        """Write the mark, or take it away; CONFLICT when the Deployment has changed since it was read."""


@dataclass(frozen=True, slots=True)
class EvictionRequest:
    """An EvictionRequest (lifecycle.k8s.io) of ours, and how the Eviction stands that it is part of.

    Attributes:
        namespace: Of the pod and the request.
        name: Of the request; that of our record.
        pod_uid: Of the pod that is to leave.
        is_withdrawn: Whether it asks for nothing any more.
        is_observed: Whether a controller has taken it up.
        is_evicted: Whether the pod has left.
        failure: The reason why nobody acts any more, in one word; "" while somebody does.
        message: What the controller says of that.
        responder: Whose turn it is, "" for nobody's.
        said: What that responder tells.
        expected: When it expects to be done, in seconds since the epoch; None when it does not tell.
    """

    namespace: str
    name: str
    pod_uid: str
    is_withdrawn: bool = False
    is_observed: bool = False
    is_evicted: bool = False
    failure: str = ""
    message: str = ""
    responder: str = ""
    said: str = ""
    expected: float | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_final(self) -> bool:
        """Whether it has come to its end."""
        return self.is_evicted or bool(self.failure)


class EvictionRequester(Protocol):
    """Asks for evictions by EvictionRequests, each request our own; those of others are left alone."""

    async def offered(self) -> Answer:
        """Whether the server serves the API; GONE when it does not."""

    async def request(self, pod: Pod, name: str) -> Answer:
        """Ask for this very pod (by uid) to leave; DONE when we have asked before."""

    async def withdraw(self, request: EvictionRequest) -> Answer:
        """Take the wish back; others may still have it."""

    async def drop(self, request: EvictionRequest) -> Answer:
        """Delete a request that has come to its end."""

    async def list(self) -> tuple[Answer, Sequence[EvictionRequest]]:
        """All of ours; GONE when the server does not serve the API."""

    async def watch(self, changed: Callable[[Mapping[str, EvictionRequest | None]], None]) -> Answer:
        """Report all of ours, by key, and then each change; None for one that is gone.

        Returns:
            GONE, when the server does not serve the API any more; it goes on until then.
        """


class NodeCloser(Protocol):
    """Keeps new pods away from nodes that are being emptied."""

    async def close(self, node: str) -> Answer:
        """Set our taint; DONE when it is there already."""

    async def reopen(self, node: str) -> Answer:
        """Remove our taint; DONE when there is none."""


class Preemptor(Protocol):
    """Removes victims of preemption."""

    async def preempt(self, victim: Pod, scheduler: str) -> Answer:
        """Delete this very pod, and say why in its status."""

    async def clear_nomination(self, pod: Pod) -> Answer:
        """Take away the nominated node of a pod of lower priority."""


@dataclass(frozen=True, slots=True)
class PodCondition:
    """The ``PodScheduled`` condition to be written, with the nomination beside it.

    Attributes:
        reason: ``Unschedulable`` or ``SchedulerError``.
        message: Worded as kube-scheduler words it.
        nominated_node: What ``status.nominatedNodeName`` becomes; None leaves it alone.
    """

    reason: str
    message: str
    nominated_node: str | None = None


class PodStatusWriter(Protocol):
    """Writes why a pod is not scheduled."""

    async def write_condition(self, pod: Pod, condition: PodCondition) -> Answer:
        """Set ``PodScheduled`` to false; the caller knows that it changed."""

    async def nominate(self, pod: Pod, node: str) -> Answer:
        """Set ``status.nominatedNodeName``: the pod will go there, but cannot be bound yet."""


@dataclass(frozen=True, slots=True)
class Note:
    """An event to be recorded on an object.

    Attributes:
        regarding: Reference to the object, as in events.k8s.io/v1.
        reason: One word for machines, such as ``FailedScheduling``.
        action: What was attempted, such as ``Scheduling``.
        text: The sentence.
        is_warning: Warning or Normal.
        reporter: ``reportingController``, such as the scheduler's name.
        related: Reference to a second object that it is about, such as the preemptor.
    """

    regarding: Mapping[str, str]
    reason: str
    action: str
    text: str
    is_warning: bool = False
    reporter: str = "plimsoll"
    related: Mapping[str, str] | None = None


class Recorder(Protocol):
    """Records events; never blocks and never fails the caller."""

    def record(self, note: Note) -> None:
        """Queue an event; equal ones are aggregated."""


class VolumeWriter(Protocol):
    """Writes which volume a claim gets."""

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> Answer:
        """Have the claim provisioned where the node reaches it."""

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> Answer:
        """Keep the volume for the claim, unless it has changed meanwhile."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a node or a pod used.

    Attributes:
        name: Of the node, or ``namespace/name`` of the pod.
        usage: Billionths by resource: cpu and memory.
        taken: When, in seconds since the epoch.
    """

    name: str
    usage: Mapping[str, int]
    taken: float


class Meter(Protocol):
    """Reads actual usage."""

    async def nodes(self) -> tuple[Answer, Sequence[Reading]]:
        """Of every node that is measured."""

    async def pods(self) -> tuple[Answer, Sequence[Reading]]:
        """Of every pod that is measured."""

    async def query(self, url: str, promql: str) -> tuple[Answer, Sequence[Sample]]:
        """The instant vector that a Prometheus query returns."""


class Records(Protocol):
    """The Eviction records (custom resources), as plain documents."""

    async def create(self, document: Mapping[str, Any]) -> Answer:
        """Write a new record; CONFLICT when it is there already."""

    async def write_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> Answer:
        """Replace a record's status."""

    async def delete(self, namespace: str, name: str) -> Answer:
        """Drop a record."""

    async def list(self) -> tuple[Answer, Sequence[Mapping[str, Any]]]:
        """All records; GONE when the server does not know the resource."""


class LeasePort(Protocol):
    """The lease by which the leader is elected."""

    @property
    def reference(self) -> Mapping[str, str]:
        """A reference to it, for events."""

    async def read(self) -> tuple[Answer, Lease | None]:
        """The lease; None with DONE when there is none."""

    async def write(self, lease: Lease) -> tuple[Answer, Lease | None]:
        """Create it, or replace the version that it names; as it was stored, when it was."""


@dataclass(frozen=True, slots=True)
class TLSSettings:
    """How an HTTPS server is verified, and what it is shown; PEM in base64, empty when there is none."""

    insecure: bool = False
    server_name: str = ""
    ca_data: str = ""
    cert_data: str = ""
    key_data: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an HTTP extender is reached.

    Attributes:
        url: What verbs are appended to.
        timeout_s: For one answer, from the connection to its last byte.
        tls: How it is verified.
    """

    url: str
    timeout_s: float
    tls: TLSSettings = TLSSettings()


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from an extender.

    Attributes:
        content: The body of an answer with status 200; None when there was none.
        problem: Why there was none, in a sentence.
    """

    content: bytes | None
    problem: str = ""


class ExtenderPort(Protocol):
    """Speaks to HTTP extenders."""

    def problem_of(self, endpoint: Endpoint) -> str:
        """Why this endpoint cannot be spoken to, such as a certificate that is none; empty when it can."""

    async def post(self, endpoint: Endpoint, verb: str, body: bytes) -> Reply:
        """Ask; never raises, never waits longer than the endpoint's time, never reads without bound."""

    async def retain(self, endpoints: Collection[Endpoint]) -> None:
        """Close the connections to all others."""


class PodReader(Protocol):
    """Reads pods as they are, every field of them."""

    async def read(self, pod: Pod) -> tuple[Answer, bytes]:
        """The document of this very pod (by uid); GONE when there is no such pod."""


class PolicySource(Protocol):
    """The policies, as plain documents."""

    async def list(self) -> tuple[Answer, Sequence[Mapping[str, Any]]]:
        """All policies; GONE when the server does not know the resource."""


class PolicyStatusWriter(Protocol):
    """Writes the status of policies."""

    async def write_status(self, name: str, status: Mapping[str, Any]) -> Answer:
        """Merge into a policy's status."""


def pod_reference(pod: Pod) -> dict[str, str]:
    """A reference to a pod, for events."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }
