"""The queue's order: what the QueueSort plugin of the profiles says, contained when it breaks.

One queue serves all profiles, so all have the same plugin with the same arguments
(:mod:`plimsoll.policies.controller` sees to it), as in kube-scheduler.
"""

from collections.abc import Collection
from typing import Any

from plimsoll.engine.plugin_calls import calling
from plimsoll.framework import PluginError, PodInfo, QueueSortPlugin
from plimsoll.ports.observer import Observer


class QueueOrder:
    """Sort keys of waiting pods, lower first.

    Args:
        default: Orders the queue while no policy is served.
        observer: Told of a plugin that breaks.
    """

    def __init__(self, default: QueueSortPlugin, observer: Observer) -> None:
        self._default = default
        self._plugin = default
        self._observer = observer

    def use(self, plugins: Collection[QueueSortPlugin]) -> None:
        """Order by the plugin of the served profiles; any of them, for they are equal."""
        self._plugin = next(iter(plugins), self._default)

    def key(self, pod: PodInfo, since: float) -> tuple[int, Any]:
        """The key of a pod that waits since then; one whose key cannot be had goes last, by age."""
        try:
            with calling(self._plugin.name, "queueSort"):
                return (0, self._plugin.sort_key(pod, since))
        except PluginError as exc:
            self._observer.plugin_failed(exc.plugin, exc.point, exc.problem)
            return (1, since)
