"""Evaluates one pod's filters as if other pods were on a node or gone, for nominations and preemption.

A trial owns a fork of the cluster and a clone of the cycle state. Plugins that sum over pods
(PreFilterExtensions) are notified of added and removed pods; the others read the forked columns.
"""

from collections.abc import Callable, Mapping
from copy import copy

import numpy as np

from plimsoll.engine.plugin_calls import answered, called
from plimsoll.engine.profile import Profile
from plimsoll.framework import (
    SUCCESS,
    CycleState,
    IntArray,
    PluginError,
    PodInfo,
    PreFilterExtensions,
    Snapshot,
    Status,
)
from plimsoll.framework.plugin_answers import checked
from plimsoll.model.columns.cluster import Cluster


class Trial:
    """Evaluates one pod's filters on a changed copy of the cluster; methods raise PluginError.

    Args:
        state: A cycle state that this trial may change.
        fork: A cluster that this trial may change.
        skipped: Plugins whose PreFilter skipped; their filters are skipped too.
        known: Codes by plugin, shape (N,), of plugins that read nodes only: pods do not change them.
    """

    def __init__(
        self,
        profile: Profile,
        state: CycleState,
        pod: PodInfo,
        fork: Cluster,
        skipped: frozenset[str],
        *,
        known: Mapping[str, IntArray] | None = None,
    ) -> None:
        self.state = state
        self.fork = fork
        self._pod = pod
        self._known = known or {}
        self._filters = [plugin for plugin in profile.filter if plugin.name not in skipped]
        self._summing = [
            plugin
            for plugin in profile.pre_filter
            if plugin.name not in skipped and isinstance(plugin, PreFilterExtensions)
        ]

    def renewed(self, state: CycleState) -> "Trial":
        """The same fork and filters with another state."""
        twin = copy(self)
        twin.state = state
        return twin

    def add(self, other: PodInfo, row: int) -> None:
        """Count ``other`` as placed on the node of ``row``."""
        self.fork.place(other, self.fork.nodes[row].name)
        snapshot = Snapshot(self.fork)
        for plugin in self._summing:
            _agreed(plugin.name, plugin.add_pod, self.state, self._pod, other, row, snapshot)

    def remove(self, other: PodInfo, row: int) -> None:
        """Stop counting ``other``, which is placed on the node of ``row``."""
        self.fork.displace(other.uid)
        snapshot = Snapshot(self.fork)
        for plugin in self._summing:
            _agreed(plugin.name, plugin.remove_pod, self.state, self._pod, other, row, snapshot)

    def status(self, row: int) -> Status:
        """The first rejection of the node of ``row``, or success."""
        one = Snapshot(self.fork).at(np.array([row], dtype=np.intp))
        for plugin in self._filters:
            known = self._known.get(plugin.name)
            if known is None:
                codes = called(plugin.name, "filter", plugin.filter, self.state, self._pod, one)
                code = int(checked(codes, 1, plugin.name, "filter")[0])
            else:
                code = int(known[row])
            if code:
                refusal = answered(plugin.name, "filter", plugin.refusal, code, self.state, self._pod)
                return refusal.by(plugin.name)
        return SUCCESS


def _agreed(plugin: str, function: Callable[..., Status], *args: object) -> None:
    status = answered(plugin, "preFilter", function, *args)
    if not status.is_success:
        raise PluginError(plugin, "preFilter", status.message or status.code.value)
