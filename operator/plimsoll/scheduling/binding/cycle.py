"""Runs the binding cycle of an assumed pod: Reserve, Permit, PreBind, Bind, PostBind, or undoes all of it.

The first half (:meth:`BindingCycle.begin`) belongs to the scheduling cycle. It awaits nothing, so the next
decision sees what was reserved. The second half runs in one task per pod. This module does not know the
queue: :mod:`plimsoll.scheduling.binding.pipeline` decides what a failure means for it.

PreBind plugins run in order. Adjacent plugins that allow parallel runs start simultaneously, and the first
rejection cancels the others. A pod that is preempted or deleted before its binding is sent is cancelled:
nothing is bound.

:mod:`plimsoll.scheduling.binding.plugin_waits` limits how long PreBind and Bind plugins may take.

Source: kube-scheduler v1.36, ``schedule_one.go`` (``bindingCycle``), ``framework/runtime/framework.go``
(``RunPreBindPlugins``) and ``backend/podsinprebind``.
"""

import asyncio
import math
from collections.abc import Sequence
from contextvars import Context
from typing import Any

from msgspec import Struct, field

from plimsoll.cluster.watch_events import PodDeleted, PodUpdated, WatchEvent
from plimsoll.devices.bookings import DevicesPort
from plimsoll.engine.plugin_calls import answered, called, calling, metered
from plimsoll.engine.profile import Profile
from plimsoll.framework import (
    SUCCESS,
    BindPlugin,
    Code,
    CycleState,
    PermitPlugin,
    PermitResult,
    Plugin,
    PluginError,
    PodInfo,
    PreBindPlugin,
    Snapshot,
    Status,
    error,
)
from plimsoll.framework.binding_ports import BinderPort, VolumesPort, WaitingPodsPort
from plimsoll.framework.plugin_answers import of_kind
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import PodBinding, PodStatusWriter
from plimsoll.ports.writes import WriteResult
from plimsoll.scheduling.binding.binder import ConfirmedBinder
from plimsoll.scheduling.binding.permits import HeldPod, Permits
from plimsoll.scheduling.binding.plugin_waits import CANCELLED, PluginWaits
from plimsoll.scheduling.binding.volume_claims import ClaimBinder
from plimsoll.scheduling.devices.device_claims import DeviceClaims


class BindingAttempt(Struct):
    """One attempt to bind one pod to one node.

    Attributes:
        state: The cycle state of this attempt, written by the scheduling cycle's plugins.
        began: Start of the attempt, in monotonic seconds.
        held: Set while Permit plugins hold the pod.
        works: PreBind plugins that have something to do for this pod.
        nominated: Whether the API server knows the pod's future node.
        answer: The API server's response to the binding, None when none was sent.
        posted: That response, if the binding was posted together with others and is not done; the cycle
            continues with it.
        has_skipped: Whether a Bind plugin returned SKIP; it may have bound the pod and failed afterwards.
    """

    pod: PodInfo
    node: str
    profile: Profile
    state: CycleState
    began: float = 0.0
    held: HeldPod | None = None
    works: list[PreBindPlugin] = field(default_factory=list)
    nominated: bool = False
    answer: WriteResult | None = None
    posted: WriteResult | None = None
    has_skipped: bool = False


class _Port(Struct):
    """Passes bindings of DefaultBinder to the API server and remembers the response."""

    binder: ConfirmedBinder
    attempt: BindingAttempt

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """POST the binding."""
        posted, self.attempt.posted = self.attempt.posted, None
        is_open = self.attempt.has_skipped
        answer = self.attempt.answer = await self.binder.bind(pod.pod, node, posted, is_open=is_open)
        return SUCCESS if answer.is_done else error(answer.message)


class BindingCycle:
    """Runs binding cycles."""

    def __init__(
        self,
        binder: PodBinding,
        statuses: PodStatusWriter,
        volumes: ClaimBinder,
        devices: DeviceClaims,
        clock: Clock,
        observer: Observer,
        recorder: EventRecorder,
    ) -> None:
        self.permits = Permits(clock)
        self._waits = PluginWaits(clock, recorder, observer)
        self._waiting = WaitingPodsPort(self.permits)
        self._binder = ConfirmedBinder(binder, clock)
        self._in_pre_bind: dict[str, asyncio.Future[Status]] = {}
        self._statuses = statuses
        self._volumes = volumes
        self.devices = devices
        self._observer = observer
        self._clock = clock

    def begin(self, attempt: BindingAttempt) -> Status:
        """Run Reserve, Permit and PreBindPreFlight; awaits nothing.

        SUCCESS: continue with ``finish``; WAIT: await ``permission`` first; anything else: ``undo``.
        """
        try:
            return self._begin(attempt)
        except PluginError as exc:
            return self._broken(exc)

    def _begin(self, attempt: BindingAttempt) -> Status:
        profile, state, pod, node = attempt.profile, attempt.state, attempt.pod, attempt.node
        state.write(self._waiting)
        snapshot = Snapshot(self._volumes.cluster)
        state.write(VolumesPort(snapshot, self._volumes))
        if self.devices.book is not None:
            state.write(DevicesPort(snapshot, self.devices))
        for booker in profile.reserve:
            status = answered(booker.name, "reserve", booker.reserve, state, pod, node)
            if not status.is_success:
                return _signed(status, booker, "reserve")
        timeouts: dict[str, float] = {}
        for holder in profile.permit:
            permission = _permission(holder, state, pod, node)
            if permission.status.code is Code.WAIT:
                timeouts[holder.name] = permission.timeout_s
            elif not permission.status.is_success:
                return _signed(permission.status, holder, "permit")
        for worker in profile.pre_bind:
            status = answered(worker.name, "preBind", worker.pre_bind_preflight, state, pod, node)
            if status.is_success:
                attempt.works.append(worker)
            elif not status.is_skip:
                return _signed(status, worker, "preBind")
        if timeouts:
            attempt.held = self.permits.hold(pod, node, timeouts)
            return Status(Code.WAIT)
        return SUCCESS

    def call_off(self, uid: str, plugin: str, reason: str) -> bool:
        """Cancel a pod that waits on Permit or in PreBind; returns whether it could still be cancelled.

        Its attempt ends as rejected by ``plugin``; nothing is bound.
        """
        held = self.permits.find(uid)
        if held is not None:
            held.reject(plugin, reason)
            return True
        called_off = self._in_pre_bind.get(uid)
        if called_off is None:
            return False
        if not called_off.done():
            called_off.set_result(Status(Code.UNSCHEDULABLE, (reason,), plugin))
        return True

    def observe(self, event: WatchEvent) -> None:
        """Cancel the binding of a pod that was deleted."""
        match event:
            case PodDeleted(pod):
                self.call_off(pod.uid, "", "removed")
            case PodUpdated(_, pod) if pod.is_terminal:
                self.call_off(pod.uid, "", "removed")

    async def permission(self, attempt: BindingAttempt) -> Status:
        """Wait until every plugin that holds the pod has allowed it, or one has rejected it."""
        if attempt.held is None:
            return SUCCESS
        await self._announce(attempt)
        return await self.permits.verdict(attempt.held)

    async def prepare(self, attempt: BindingAttempt) -> Status:
        """Run PreBind; the caller must ``undo`` unless this returns SUCCESS."""
        try:
            status = await self._pre_bind(attempt)
        except PluginError as exc:
            return self._broken(exc)
        if status.is_success:
            attempt.works = []
        return status

    async def finish(self, attempt: BindingAttempt) -> Status:
        """Run what is left of PreBind, then Bind and PostBind.

        The caller must ``undo`` unless this returns SUCCESS.
        """
        try:
            status = await self._finish(attempt)
        except PluginError as exc:
            return self._broken(exc)
        if status.is_success:
            self._tell(attempt)
        return status

    def posts_only(self, attempt: BindingAttempt) -> bool:
        """Whether only the POST of the binding is left to do."""
        return not attempt.works and attempt.profile.capabilities.binds_by_port

    async def post_together(self, attempts: Sequence[tuple[BindingAttempt, Context]]) -> list[bool]:
        """POST the bindings of such attempts; returns which are bound. Call ``finish`` for the others.

        The call of a Bind plugin lasts until the group is bound; it is metered in each attempt's context.
        """
        began = self._clock.monotonic()
        answers = await self._binder.bind_together([(each.pod.pod, each.node) for each, _ in attempts])
        seconds = self._clock.monotonic() - began
        done = []
        for (attempt, context), answer in zip(attempts, answers, strict=True):
            is_bound = answer is not None and answer.is_done
            done.append(is_bound)
            if not is_bound:
                attempt.posted = answer
                continue
            attempt.answer = answer
            context.run(metered, attempt.profile.bind[0].name, "bind", seconds)
            context.run(self._tell, attempt)
        return done

    async def _finish(self, attempt: BindingAttempt) -> Status:
        state = attempt.state
        if attempt.works:
            status = await self._pre_bind(attempt)
            if not status.is_success:
                return status
        state.write(BinderPort(_Port(self._binder, attempt)))
        try:
            return await self._bind(attempt)
        finally:
            # It refers to the attempt: a large pod would stay until a full collection of garbage.
            state.drop(BinderPort)

    async def _bind(self, attempt: BindingAttempt) -> Status:
        pod, node = attempt.pod, attempt.node
        for plugin in attempt.profile.bind:
            if plugin.name in attempt.profile.capabilities.by_port:
                status = await _bind(plugin, attempt)  # its only wait is for a write, which has a limit
            else:
                call = asyncio.ensure_future(_bind(plugin, attempt))
                status = await self._waits.outcome({call: plugin}, "bind", attempt)
            if status.is_success:
                return status
            if not status.is_skip:
                # A plugin that binds without this port cannot report the outcome.
                if attempt.answer is None and await self._binder.is_on(pod.pod, node):
                    return SUCCESS
                return _signed(status, plugin, "bind")
            attempt.has_skipped = True
        return error("no bind plugin took the pod; enable DefaultBinder")

    async def _pre_bind(self, attempt: BindingAttempt) -> Status:
        """Run the plugins that have something to do; SUCCESS when the pod may be bound."""
        uid = attempt.pod.uid
        called_off = self._in_pre_bind[uid] = asyncio.get_running_loop().create_future()
        try:
            await self._announce(attempt)
            for group in _groups(attempt.works, attempt.profile.capabilities.parallel):
                calls = {asyncio.ensure_future(_work(plugin, attempt)): plugin for plugin in group}
                status = await self._waits.outcome(calls, "preBind", attempt, called_off)
                if not status.is_success:
                    return status
            return called_off.result() if called_off.done() else SUCCESS
        finally:
            if self._in_pre_bind.get(uid) is called_off:
                del self._in_pre_bind[uid]

    def undo(self, attempt: BindingAttempt) -> None:
        """Unreserve with all plugins in reverse order, reserved or not; the pod is held no longer."""
        self.permits.drop(attempt.pod.uid)
        for plugin in reversed(attempt.profile.reserve):
            try:
                with calling(plugin.name, "reserve"):
                    plugin.unreserve(attempt.state, attempt.pod, attempt.node)
            except PluginError as exc:
                self._broken(exc)

    def _tell(self, attempt: BindingAttempt) -> None:
        """Run PostBind; the pod stays bound whatever the plugins do."""
        self.devices.settled(attempt.pod)
        for plugin in attempt.profile.post_bind:
            try:
                with calling(plugin.name, "postBind"):
                    plugin.post_bind(attempt.state, attempt.pod, attempt.node)
            except PluginError as exc:
                self._broken(exc)

    async def _announce(self, attempt: BindingAttempt) -> None:
        """Write the nominated node while the pod cannot be bound yet; no caller depends on it."""
        if not attempt.nominated:
            attempt.nominated = True
            await self._statuses.nominate(attempt.pod.pod, attempt.node)

    def _broken(self, exc: PluginError) -> Status:
        self._observer.plugin_failed(exc.plugin, exc.point, exc.problem, exc.trace)
        return error(str(exc)).by(exc.plugin)


def _groups(works: Sequence[PreBindPlugin], parallel: frozenset[str]) -> list[list[PreBindPlugin]]:
    """Group adjacent plugins that may run simultaneously; every other plugin is its own group."""
    groups: list[list[PreBindPlugin]] = []
    joins = False
    for plugin in works:
        runs_in_parallel = plugin.name in parallel
        if runs_in_parallel and joins:
            groups[-1].append(plugin)
        else:
            groups.append([plugin])
        joins = runs_in_parallel
    return groups


async def _work(plugin: PreBindPlugin, attempt: BindingAttempt) -> Status:
    with calling(plugin.name, "preBind", CANCELLED):
        answer = await plugin.pre_bind(attempt.state, attempt.pod, attempt.node)
    status = of_kind(answer, Status, plugin.name, "preBind")
    return status if status.is_success else _signed(status, plugin, "preBind")


async def _bind(plugin: BindPlugin, attempt: BindingAttempt) -> Status:
    with calling(plugin.name, "bind", CANCELLED):
        answer = await plugin.bind(attempt.state, attempt.pod, attempt.node)
    return of_kind(answer, Status, plugin.name, "bind")


def _permission(plugin: PermitPlugin, state: CycleState, pod: PodInfo, node: str) -> PermitResult:
    """The result of a permit plugin, with a time that can be waited for."""
    answer = called(plugin.name, "permit", plugin.permit, state, pod, node)
    answer = of_kind(answer, PermitResult, plugin.name, "permit")
    of_kind(answer.status, Status, plugin.name, "permit")
    seconds: Any = answer.timeout_s
    if not isinstance(seconds, int | float) or math.isnan(seconds):
        problem = f"returned {seconds!r} as timeout_s; expected a number of seconds"
        raise PluginError(plugin.name, "permit", problem)
    return answer


def _signed(status: Status, plugin: Plugin, point: str) -> Status:
    """A plugin's rejection with its name; an error's message says which plugin and point raised it."""
    if status.is_rejected:
        return status.by(plugin.name)
    return error(str(PluginError(plugin.name, point, status.message))).by(plugin.name)
