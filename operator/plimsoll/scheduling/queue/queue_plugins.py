"""What plugins say of pods that wait: whether one may be tried at all, and what may help one refused.

The queue asks through here; a plugin that breaks is named and counted, and harms only the pods it judges: a
gate that raises holds its pod, a hint that raises wakes it.
"""

from collections.abc import Callable, Mapping

from plimsoll.engine.plugin_calls import calling
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import (
    SUCCESS,
    Change,
    ClusterObjects,
    Hint,
    PluginError,
    PodInfo,
    PreEnqueuePlugin,
    QueueingHint,
    Status,
    error,
)
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.queue.queue import SchedulingQueue
from plimsoll.scheduling.queue.queueing_hints import QueueingHints, hints_of


class Enqueueing:
    """The PreEnqueue plugins and queueing hints of the profiles that are served.

    Args:
        queue: Asks through this from now on.
        objects: What hints see besides the pod and the change.
        clock: Measures hints.
        observer: Told of plugins that break, and of hints.

    Attributes:
        hold: Asked of a pod that no plugin holds back.
    """

    def __init__(
        self, queue: SchedulingQueue, objects: ClusterObjects, clock: Clock, observer: Observer
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._observer = observer
        self._schedulers: Mapping[str, ProfileScheduler] = {}
        self._hints: dict[str, QueueingHints] = {}
        self.hold: Callable[[PodInfo], Status] = lambda _: SUCCESS
        queue.ask_with(self.gate, self.ask, objects)

    def serve(self, schedulers: Mapping[str, ProfileScheduler]) -> None:
        """The profiles have changed: pods of those that are other ones now are tried again."""
        before, self._schedulers = self._schedulers, schedulers
        changed = {name for name in {*before, *schedulers} if before.get(name) is not schedulers.get(name)}
        self._hints = {
            name: self._declared(scheduler) if name in changed else self._hints[name]
            for name, scheduler in schedulers.items()
        }
        self._queue.use(self._hints, changed, self._clock.monotonic())

    def serves(self, pod: PodInfo) -> bool:
        """Whether the pod is for one of the profiles."""
        return pod.pod.spec.scheduler_name in self._schedulers

    def gate(self, pod: PodInfo, first: str = "") -> Status:
        """What the PreEnqueue plugins say, asking the one named ``first`` before the others."""
        scheduler = self._schedulers.get(pod.pod.spec.scheduler_name)
        if scheduler is None:
            return SUCCESS
        plugins = scheduler.profile.pre_enqueue
        for plugin in sorted(plugins, key=lambda each: each.name != first) if first else plugins:
            status = self._ask_gate(plugin, pod)
            if not status.is_success:
                return status
        return self.hold(pod)

    def _ask_gate(self, plugin: PreEnqueuePlugin, pod: PodInfo) -> Status:
        try:
            with calling(plugin.name, "preEnqueue"):
                return plugin.pre_enqueue(pod).by(plugin.name)
        except PluginError as exc:
            self._observer.plugin_failed(exc.plugin, exc.point, exc.problem)
            return error(str(exc)).by(exc.plugin)

    def ask(self, plugin: str, hint: Hint, pod: PodInfo, change: Change) -> QueueingHint:
        """Ask one hint; what raises, or answers nonsense, may help."""
        began = self._clock.monotonic()
        try:
            with calling(plugin, "queueingHint"):
                answer = hint(pod, change)
                if not isinstance(answer, QueueingHint):
                    raise TypeError(f"it answered {answer!r}; expected QUEUE or SKIP")
                said = answer.value
        except PluginError as exc:
            self._observer.plugin_failed(exc.plugin, exc.point, exc.problem)
            answer, said = QueueingHint.QUEUE, "Error"
        self._observer.hint_asked(plugin, change.label, said, self._clock.monotonic() - began)
        return answer

    def _declared(self, scheduler: ProfileScheduler) -> QueueingHints:
        """The registrations of a profile; where an extender, or who says none, rejects pods, any may help."""
        plugins = []
        for plugin in scheduler.profile.plugins:
            try:
                with calling(plugin.name, "eventsToRegister"):
                    hints_of([plugin])
                plugins.append(plugin)
            except PluginError as exc:
                self._observer.plugin_failed(exc.plugin, exc.point, exc.problem)
        whole = len(plugins) == len(scheduler.profile.plugins) and not scheduler.profile.extenders
        return hints_of(plugins, has_undeclared=not whole)
