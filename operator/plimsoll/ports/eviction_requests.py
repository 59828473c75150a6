"""Port for EvictionRequests (KEP-4563)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteResult


class EvictionRequest(Struct, frozen=True):
    """One of our EvictionRequests (lifecycle.k8s.io), with the state of the Eviction that combines it.

    Attributes:
        namespace: The namespace of the pod and the request.
        name: The name of the request, which is that of our record.
        pod_uid: The uid of the pod to evict.
        is_withdrawn: Whether the request is withdrawn.
        is_observed: Whether a controller has picked it up.
        is_evicted: Whether the pod has left.
        failure: Why no responder acts any more, in one word; "" while one acts.
        message: The controller's message about the failure.
        responder: The active responder; "" for no responder.
        expected: When the responder expects to finish, in seconds since the epoch; None if it does not say.
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
        """Whether the request has ended."""
        return self.is_evicted or bool(self.failure)


class EvictionRequester(Protocol):
    """Requests evictions through EvictionRequests of our own; those of other requesters are not touched."""

    async def offered(self) -> WriteResult:
        """Whether the server serves the API; GONE when it does not."""

    async def request(self, pod: Pod, name: str) -> WriteResult:
        """Request the eviction of this very pod (by uid); DONE when our request already exists."""

    async def withdraw(self, request: EvictionRequest) -> WriteResult:
        """Withdraw our request; requests of other requesters may remain."""

    async def drop(self, request: EvictionRequest) -> WriteResult:
        """Delete a request that has ended."""

    async def list(self) -> tuple[WriteResult, Sequence[EvictionRequest]]:
        """All our requests; GONE when the server does not serve the API."""

    async def watch(self, changed: Callable[[Mapping[str, EvictionRequest | None]], None]) -> WriteResult:
        """Report all our requests by key, then each change; None reports a deleted request.

        Returns GONE when the server stops serving the API; runs until then.
        """
