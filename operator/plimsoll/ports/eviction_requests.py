"""Port for EvictionRequests (KEP-4563)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteResult


@dataclass(frozen=True, slots=True)
class EvictionRequest:
    """An EvictionRequest (lifecycle.k8s.io) of ours, and how the Eviction stands that it is part of.

    Attributes:
        namespace: Of the pod and the request.
        name: Of the request; that of our record.
        pod_uid: Of the pod that is to leave.
        is_withdrawn: Whether the request is withdrawn.
        is_observed: Whether a controller has taken it up.
        is_evicted: Whether the pod has left.
        failure: The reason why no responder acts any more, in one word; "" while one does.
        message: What the controller says of that.
        responder: The active responder, "" when there is no such responder.
        expected: When it expects to be done, in seconds since the epoch; None when it does not say.
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
    """Requests evictions by EvictionRequests of our own; those of other requesters are left alone."""

    async def offered(self) -> WriteResult:
        """Whether the server serves the API; GONE when it does not."""

    async def request(self, pod: Pod, name: str) -> WriteResult:
        """Request the eviction of this very pod (by uid); DONE when our request exists already."""

    async def withdraw(self, request: EvictionRequest) -> WriteResult:
        """Withdraw our request; other requesters may still have theirs."""

    async def drop(self, request: EvictionRequest) -> WriteResult:
        """Delete a request that has come to its end."""

    async def list(self) -> tuple[WriteResult, Sequence[EvictionRequest]]:
        """All of ours; GONE when the server does not serve the API."""

    async def watch(self, changed: Callable[[Mapping[str, EvictionRequest | None]], None]) -> WriteResult:
        """Report all of ours, by key, and then each change; None for one that is gone.

        Returns GONE when the server does not serve the API any more; it goes on until then.
        """
