"""Records when each pod first appears and first has a node, with one watch for all schedulers."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import msgspec

from plimsoll.kube.session.session import Session


class _Pod(msgspec.Struct):
    class Meta(msgspec.Struct):
        name: str = ""
        resourceVersion: str = ""  # noqa: N815 - the API's spelling

    class Spec(msgspec.Struct):
        nodeName: str = ""  # noqa: N815 - the API's spelling

    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_EVENT, _POD = msgspec.json.Decoder(_Event), msgspec.json.Decoder(_Pod)


class Sightings:
    """Moments by pod name, in seconds that never go back.

    Args:
        has_claims: Whether the claim controller changes pods before the scheduler does.

    Attributes:
        seen: When a pod appeared.
        bound: When it had a node.
        bound_by_prefix: How many have one, by what stands before the first hyphen.
        began: When a pod that was there first changed: a scheduler's first write that is seen. None before.
    """

    def __init__(self, *, has_claims: bool = False) -> None:
        self._has_claims = has_claims
        self.seen: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        self.bound_by_prefix: Counter[str] = Counter()
        self.began: float | None = None
        self._news = asyncio.Event()

    def note(self, line: bytes, now: float) -> str:
        """Take in one line of the watch; the version that it brings, "" when none.

        Raises:
            RuntimeError: The watch cannot go on, so that moments are missed.
        """
        event = _EVENT.decode(line)
        if event.type == "ERROR":
            raise RuntimeError(f"the watch of the pods broke: {bytes(event.object)!r}")
        pod = _POD.decode(event.object)
        if event.type == "DELETED":
            return pod.metadata.resourceVersion
        name = pod.metadata.name
        self.seen.setdefault(name, now)
        is_schedulers = bool(pod.spec.nodeName) or not self._has_claims
        if event.type == "MODIFIED" and self.began is None and is_schedulers:
            self.began = now
        if pod.spec.nodeName and name not in self.bound:
            self.bound[name] = now
            self.bound_by_prefix[name.partition("-")[0]] += 1
        self._news.set()
        return pod.metadata.resourceVersion

    async def until(self, done: Callable[[], bool], patience_s: float) -> bool:
        """Wait for a condition; whether it came true in time."""
        deadline = time.perf_counter() + patience_s
        while not done():
            self._news.clear()
            left = deadline - time.perf_counter()
            if left <= 0:
                return False
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)
        return True

    def bound_of(self, prefix: str) -> list[float]:
        """When the pods of a prefix were bound, in order."""
        return sorted(at for name, at in self.bound.items() if name.startswith(f"{prefix}-"))

    def waits_of(self, prefix: str) -> list[float]:
        """Seconds from the appearance of the pods of a prefix to their nodes'."""
        return [at - self.seen[name] for name, at in self.bound.items() if name.startswith(f"{prefix}-")]


@asynccontextmanager
async def watching(session: Session, namespace: str, *, has_claims: bool = False) -> AsyncIterator[Sightings]:
    """Watch the pods of a namespace while in the block."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    sightings = Sightings(has_claims=has_claims)
    begun = asyncio.Event()

    async def look() -> None:
        page = await session.request("GET", path, params={"limit": "1"})
        version = _POD.decode(page).metadata.resourceVersion
        while True:  # an API server cuts watches whenever it likes, and those of slow readers first
            params = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "3600"}
            async with session.stream(path, params, 3600.0) as batches:
                begun.set()
                async for lines in batches:
                    now = time.perf_counter()
                    for line in lines:
                        version = sightings.note(line, now) or version

    task = asyncio.create_task(look())
    waiting = asyncio.create_task(begun.wait())
    try:
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield sightings
        if task.done():  # it ends by nothing but an error
            task.result()
    finally:
        waiting.cancel()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
