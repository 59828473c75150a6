"""Waits for PreBind and Bind plugins, for a limited time.

A plugin that does not return is named in an event of its pod, and cancelled in the end: the attempt then
fails like any other.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from msgspec import Struct

from plimsoll.engine.profile import Profile
from plimsoll.framework import SUCCESS, Plugin, PluginError, PodInfo, Status
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import pod_reference
from plimsoll.scheduling.binding.permits import duration

#: Seconds after which a plugin is named in an event of the pod, and after which it is cancelled; seconds that
#: it then has to end.
SAID_AFTER_S, GIVEN_UP_AFTER_S, TO_END_S = 30.0, 900.0, 10.0

#: Ends an awaited call from outside, so it is no mistake of the plugin's.
CANCELLED = (asyncio.CancelledError, GeneratorExit)


class Attempt(Protocol):
    """The part of an attempt that an event states."""

    @property
    def pod(self) -> PodInfo:
        """The pod."""

    @property
    def node(self) -> str:
        """The node to which it will be bound."""

    @property
    def profile(self) -> Profile:
        """Its profile."""


class PluginWaits(Struct, frozen=True):
    """Waits for calls of plugins."""

    _clock: Clock
    _recorder: EventRecorder
    _observer: Observer

    async def outcome(
        self,
        calls: Mapping[asyncio.Task[Status], Plugin],
        point: str,
        attempt: Attempt,
        called_off: asyncio.Future[Status] | None = None,
    ) -> Status:
        """The first status of these calls that is no success, or of ``called_off``; all others are cancelled.

        Raises:
            PluginError: A plugin raised, cancelled its own call, or did not return in time.
        """
        pending: set[asyncio.Future[Status]] = {*calls}
        waits = asyncio.ensure_future(self._clock.sleep(SAID_AFTER_S))
        is_said = False
        try:
            while pending:
                until: set[asyncio.Future[Any]] = {*pending, waits}
                if called_off is not None:
                    until.add(called_off)
                done, _ = await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
                if called_off is not None and called_off.done():
                    return called_off.result()
                pending -= done
                for call, plugin in calls.items():  # in the profile's order, if several end simultaneously
                    if call in done and not _ended(call, plugin, point).is_success:
                        return call.result()
                if pending and waits in done:
                    late = next(plugin for call, plugin in calls.items() if call in pending)
                    if is_said:
                        problem = f"has not returned within {duration(GIVEN_UP_AFTER_S)}"
                        raise PluginError(late.name, point, problem)
                    is_said = True
                    self._say_late(attempt, late.name, point)
                    waits = asyncio.ensure_future(self._clock.sleep(GIVEN_UP_AFTER_S - SAID_AFTER_S))
            return SUCCESS
        finally:
            waits.cancel()
            # The caller undoes their effects next, so they must have ended by then.
            await self._cancelled(pending)

    def _say_late(self, attempt: Attempt, plugin: str, point: str) -> None:
        name, most = f"{point[:1].upper()}{point[1:]}", duration(GIVEN_UP_AFTER_S)
        said = (
            f'{name} plugin "{plugin}" has not returned for {duration(SAID_AFTER_S)}; the pod waits for it, '
            f"with its room on {attempt.node} taken, at most {most}"
        )
        reference, reporter = pod_reference(attempt.pod.pod), attempt.profile.scheduler_name
        note = EventNote(reference, "PluginIsSlow", "Binding", said, is_warning=True, reporter=reporter)
        self._recorder.record(note)

    async def _cancelled(self, calls: Collection[asyncio.Future[Status]]) -> None:
        """Cancel calls, and wait until they have ended or have had time to."""
        if not calls:
            return
        for call in calls:
            call.cancel()
        over = asyncio.ensure_future(self._clock.sleep(TO_END_S))
        ending = asyncio.gather(*calls, return_exceptions=True)
        until: set[asyncio.Future[Any]] = {ending, over}
        await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        if not ending.done():
            self._observer.failed("binding", "a plugin ignores that its call is cancelled; it runs on")


def _ended(call: asyncio.Future[Status], plugin: Plugin, point: str) -> Status:
    """The status of a call that has ended, and that this module has not cancelled."""
    if call.cancelled():
        raise PluginError(plugin.name, point, "CancelledError: it has cancelled its own call")
    return call.result()
