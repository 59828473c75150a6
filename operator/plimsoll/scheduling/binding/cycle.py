"""The way of an assumed pod to its node: Reserve → Permit → PreBind → Bind → PostBind, or all of it undone.

The first half (:meth:`BindingCycle.begin`) belongs to the scheduling cycle: it awaits nothing, so that the
next decision sees what was reserved. The second half runs beside the loop, one task a pod. Nothing here
knows the queue or the cache: what a failure means for them is :mod:`plimsoll.scheduling.loop`'s.

Source: kube-scheduler v1.36, ``schedule_one.go`` (``bindingCycle``).
"""

from dataclasses import dataclass, field

from plimsoll.engine.plugin_calls import calling
from plimsoll.engine.profile import Profile
from plimsoll.framework import (
    SUCCESS,
    Code,
    CycleState,
    Permission,
    PluginError,
    PodInfo,
    PreBindPlugin,
    Status,
    error,
)
from plimsoll.framework.binding_ports import BinderPort, WaitingPodsPort
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.pods import PodBinding, PodStatusWriter
from plimsoll.ports.writes import WriteResult
from plimsoll.scheduling.binding.answering import an_answer, signed
from plimsoll.scheduling.binding.binder import CertainBinder
from plimsoll.scheduling.binding.permits import HeldPod, Permits
from plimsoll.scheduling.binding.prebinding import PreBinding


@dataclass(slots=True)
class Attempt:
    """One pod on its way to one node.

    Attributes:
        pod: The pod, assumed on ``node``.
        node: Where it goes.
        profile: Whose plugins are asked.
        state: What the scheduling cycle's plugins learned; the attempt's own.
        began: When the attempt began, in seconds that never go back.
        held: Set while plugins make it wait.
        works: PreBind plugins that have something to do.
        nominated: Whether the API server was told where the pod will go.
        answer: How the API server took the binding, None when it was not asked.
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


@dataclass(slots=True)
class _Port:
    """DefaultBinder's way to the API server, which remembers the answer."""

    binder: CertainBinder
    attempt: Attempt

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """POST the binding."""
        answer = self.attempt.answer = await self.binder.bind(pod.pod, node)
        return SUCCESS if answer.is_done else error(answer.message)


class BindingCycle:
    """Carries attempts out.

    Args:
        binder: Sends bindings.
        statuses: Tells the API server where a pod will go while it waits.
        clock: Time.
        observer: Told of plugins that raise.

    Attributes:
        permits: The pods that wait on Permit.
    """

    def __init__(
        self, binder: PodBinding, statuses: PodStatusWriter, clock: Clock, observer: Observer
    ) -> None:
        self.permits = Permits(clock)
        self._binder = CertainBinder(binder, clock)
        self._pre_binding = PreBinding(self._announce)
        self._statuses = statuses
        self._observer = observer

    def begin(self, attempt: Attempt) -> Status:
        """Reserve, ask Permit, and ask what PreBind will have to do; awaits nothing.

        Returns:
            SUCCESS: go on with ``finish``; WAIT: ``permission`` first; anything else: ``undo``.
        """
        try:
            return self._begin(attempt)
        except PluginError as exc:
            return self._broken(exc)

    def _begin(self, attempt: Attempt) -> Status:
        profile, state, pod, node = attempt.profile, attempt.state, attempt.pod, attempt.node
        state.write(WaitingPodsPort(self.permits))
        for booker in profile.reserve:
            with calling(booker.name, "reserve"):
                status = an_answer(booker.reserve(state, pod, node), Status)
            if not status.is_success:
                return signed(status, booker, "reserve")
        timeouts: dict[str, float] = {}
        for holder in profile.permit:
            with calling(holder.name, "permit"):
                permission = an_answer(holder.permit(state, pod, node), Permission)
            if permission.status.code is Code.WAIT:
                timeouts[holder.name] = permission.timeout_s
            elif not permission.status.is_success:
                return signed(permission.status, holder, "permit")
        for worker in profile.pre_bind:
            with calling(worker.name, "preBind"):
                status = an_answer(worker.pre_bind_preflight(state, pod, node), Status)
            if status.is_success:
                attempt.works.append(worker)
            elif not status.is_skip:
                return signed(status, worker, "preBind")
        if timeouts:
            attempt.held = self.permits.hold(pod, node, timeouts)
            return Status(Code.WAIT)
        return SUCCESS

    def call_off(self, uid: str, plugin: str, reason: str) -> bool:
        """Stop a pod that waits on Permit or in PreBind; whether it could still be stopped.

        Its attempt ends as rejected by ``plugin``; nothing was bound.
        """
        held = self.permits.find(uid)
        if held is not None:
            held.reject(plugin, reason)
            return True
        return self._pre_binding.call_off(uid, plugin, reason)

    async def permission(self, attempt: Attempt) -> Status:
        """Wait until everybody who holds the pod has allowed it, or somebody has not."""
        if attempt.held is None:
            return SUCCESS
        await self._announce(attempt)
        return await self.permits.verdict(attempt.held)

    async def finish(self, attempt: Attempt) -> Status:
        """PreBind, Bind, PostBind; anything but success asks for ``undo``."""
        try:
            status = await self._finish(attempt)
        except PluginError as exc:
            return self._broken(exc)
        if status.is_success:
            self._tell(attempt)
        return status

    async def _finish(self, attempt: Attempt) -> Status:
        state, pod, node = attempt.state, attempt.pod, attempt.node
        status = await self._pre_binding.run(attempt)
        if not status.is_success:
            return status
        state.write(BinderPort(_Port(self._binder, attempt)))
        for plugin in attempt.profile.bind:
            with calling(plugin.name, "bind"):
                status = an_answer(await plugin.bind(state, pod, node), Status)
            if status.is_success:
                return status
            if not status.is_skip:
                return signed(status, plugin, "bind")
        return error("no bind plugin took the pod; enable DefaultBinder")

    def undo(self, attempt: Attempt) -> None:
        """Unreserve everything in reverse order, also what was never reserved."""
        for plugin in reversed(attempt.profile.reserve):
            try:
                with calling(plugin.name, "reserve"):
                    plugin.unreserve(attempt.state, attempt.pod, attempt.node)
            except PluginError as exc:
                self._broken(exc)

    def _tell(self, attempt: Attempt) -> None:
        """PostBind: the pod is bound whatever they do."""
        for plugin in attempt.profile.post_bind:
            try:
                with calling(plugin.name, "postBind"):
                    plugin.post_bind(attempt.state, attempt.pod, attempt.node)
            except PluginError as exc:
                self._broken(exc)

    async def _announce(self, attempt: Attempt) -> None:
        """Say where the pod will go while it cannot be bound yet; nobody depends on it."""
        if not attempt.nominated:
            attempt.nominated = True
            await self._statuses.nominate(attempt.pod.pod, attempt.node)

    def _broken(self, exc: PluginError) -> Status:
        self._observer.plugin_failed(exc.plugin, exc.point, exc.problem)
        return error(str(exc)).by(exc.plugin)
