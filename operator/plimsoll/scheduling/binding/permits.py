"""Holds assumed pods that wait on Permit until all plugins that hold them allow it.

Waiting happens outside of the scheduling cycle: the loop goes on, other pods see the room as taken. A pod
is let go when every plugin that holds it has allowed it, and rejected by the first rejection or when the
first timeout is over.

Source: kube-scheduler v1.36, ``framework/runtime/waiting_pods_map.go``.
"""

import asyncio
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from plimsoll.framework import SUCCESS, Code, PodInfo, Status
from plimsoll.ports.clock import Clock

#: A plugin that asks for more waits this many seconds.
LONGEST_WAIT_S = 15 * 60.0


class HeldPod:
    """One pod that waits; made by :class:`Permits`, handed to plugins."""

    def __init__(self, pod: PodInfo, node: str, timeouts: Mapping[str, float]) -> None:
        self._pod = pod
        self._node = node
        self._holders = dict(timeouts)
        self.verdict: asyncio.Future[Status] = asyncio.get_running_loop().create_future()

    @property
    def pod(self) -> PodInfo:
        """The pod."""
        return self._pod

    @property
    def node(self) -> str:
        """Where it is assumed."""
        return self._node

    @property
    def holders(self) -> Mapping[str, float]:
        """Plugin to the seconds it waits at most; emptied as they allow."""
        return MappingProxyType(self._holders)

    def allow(self, plugin: str) -> None:
        """One holder less; the last one lets the pod go."""
        self._holders.pop(plugin, None)
        if not self._holders and not self.verdict.done():
            self.verdict.set_result(SUCCESS)

    def reject(self, plugin: str, reason: str) -> None:
        """The pod does not bind."""
        if not self.verdict.done():
            self.verdict.set_result(Status(Code.UNSCHEDULABLE, (reason,), plugin))


class Permits:
    """The pods that wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, HeldPod] = {}

    def __iter__(self) -> Iterator[HeldPod]:
        """Those that wait; a plugin may allow or reject while it looks."""
        return iter(tuple(self._held.values()))

    def find(self, uid: str) -> HeldPod | None:
        """A waiting pod."""
        return self._held.get(uid)

    def hold(self, pod: PodInfo, node: str, timeouts: Mapping[str, float]) -> HeldPod:
        """Make a pod wait; ``timeouts`` are seconds by plugin, cut to 15 minutes each."""
        cut = {plugin: min(max(seconds, 0.0), LONGEST_WAIT_S) for plugin, seconds in timeouts.items()}
        held = self._held[pod.uid] = HeldPod(pod, node, cut)
        return held

    def drop(self, uid: str) -> None:
        """The pod will not bind, and no caller waits for the verdict."""
        self._held.pop(uid, None)

    async def verdict(self, held: HeldPod) -> Status:
        """Wait until the pod may go or must not; it waits no longer afterwards."""
        waited = 0.0
        try:
            while not held.verdict.done():
                plugin, seconds = min(held.holders.items(), key=lambda each: each[1])
                timer = asyncio.ensure_future(self._clock.sleep(seconds - waited))
                until: list[asyncio.Future[Any]] = [held.verdict, timer]
                try:
                    await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    timer.cancel()
                waited = seconds
                if plugin in held.holders:
                    took = duration(seconds)
                    held.reject(plugin, f"rejected due to timeout after waiting {took} at plugin {plugin}")
            return held.verdict.result()
        finally:
            if self._held.get(held.pod.uid) is held:
                del self._held[held.pod.uid]


def duration(seconds: float) -> str:
    """Seconds the way Go prints them: ``1m30s``, ``500ms``, ``15m0s``."""
    if seconds and seconds < 1:
        return f"{seconds * 1000:.6f}".rstrip("0").rstrip(".") + "ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:.9f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
