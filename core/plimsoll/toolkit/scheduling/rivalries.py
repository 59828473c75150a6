"""Rivalry: pods that must not share a topology domain, as the plugin of the scheduler counts them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from plimsoll.framework.extension_points import Plugin
from plimsoll.framework.plugin_answers import judged, of_kind
from plimsoll.model.columns.columns import BoolArray, IntArray
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.kinds.pod_info import PodInfo


class Rivalry(NamedTuple):
    """One required anti-affinity term that concerns pods of a template: one of theirs, or one against them.

    Attributes:
        topology_key: The node label whose values are the domains.
        sums: Shape (D + 1,): pods on the other side of the term by domain; the last cell is 0, for nodes
            without the label.
        itself: How many of these each of the pods counts as itself.
        is_own: Whether it is a term of the pods.
    """

    topology_key: str
    sums: IntArray
    itself: int
    is_own: bool

    def refused(self, rows: Sequence[int], snapshot: Snapshot) -> BoolArray:
        """Which of the nodes of placed pods would be refused for them, with the pod taken off; shape (P,)."""
        domains = snapshot.label_column(self.topology_key)[list(rows)]
        refused: BoolArray = self.sums[domains] > self.itself
        return refused


@runtime_checkable
class KeepsApart(Plugin, Protocol):
    """A plugin that keeps pods out of domains with certain others."""

    def rivalries(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Rivalry, ...]:
        """The terms that refuse nodes to pods of this pod's template; valid until a pod comes or goes."""


def rivalries_of(plugin: KeepsApart, pod: PodInfo, snapshot: Snapshot) -> tuple[Rivalry, ...]:
    """What the plugin answers.

    Raises:
        PluginError: It raised, or returned something else.
    """
    answer = judged(plugin.name, "filter", plugin.rivalries, pod, snapshot)
    found = of_kind(answer, tuple, plugin.name, "filter")
    return tuple([of_kind(each, Rivalry, plugin.name, "filter") for each in found])
