"""PowerSaving: only important pods wake a sleeping node, and the node is awake before the pod arrives.

Formula, per node n, asleep where its label ``args.label`` is ``args.value``::

    feasible[n] = not asleep[n] or pod.priority >= args.wake_priority
    score[n]    = 0 if asleep[n] else 100

Before binding to a sleeping node, ``POST <args.wake_url>/<node>`` must answer with a status below 300.
Units: points, 0..100; seconds.
Edges: nodes without the label are awake; without ``wakeUrl`` no request is sent.
Source: our own; an example of a plugin.
Differs: there is nothing like it upstream.
"""

from dataclasses import dataclass
from typing import ClassVar

import aiohttp
import numpy as np
from pydantic import Field, PositiveFloat

from plimsoll import framework as fwk

ASLEEP = "node(s) were asleep"


class PowerSavingArgs(fwk.PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy."""

    label: str = Field(default="power", description="The node label that tells.")
    value: str = Field(default="asleep", description="Its value on nodes that sleep.")
    wake_priority: int = Field(default=1000, description="Pods of at least this priority may wake a node.")
    wake_url: str = Field(default="", description="Where nodes are woken: POST <wakeUrl>/<node>.")
    timeout_seconds: PositiveFloat = Field(default=10, description="How long a node may take to wake.")


@dataclass(frozen=True, slots=True)
class SleepingNodes:
    """What PreFilter saw, for PreBind."""

    names: frozenset[str]


class PowerSaving(
    fwk.PreFilterPlugin, fwk.NodeFilter, fwk.ScorePlugin, fwk.PreBindPlugin, fwk.EnqueueExtensions
):
    """Let nodes sleep unless an important pod needs one."""

    name: ClassVar = "PowerSaving"
    args_model: ClassVar = PowerSavingArgs
    args: PowerSavingArgs

    def __init__(self, args: PowerSavingArgs) -> None:
        self.args = args

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Note who sleeps."""
        asleep = self._asleep(snapshot)
        nodes = (snapshot.node(int(position)).name for position in np.flatnonzero(asleep))
        state.write(SleepingNodes(frozenset(nodes)))
        return fwk.SUCCESS

    def filter_node(self, state: fwk.CycleState, pod: fwk.PodInfo, node: fwk.NodeView) -> fwk.Status:
        """One node, in plain Python: the framework asks for each of them."""
        if node.labels.get(self.args.label) != self.args.value or pod.priority >= self.args.wake_priority:
            return fwk.SUCCESS
        return fwk.unschedulable(ASLEEP)

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """What may help a pod for which no node was awake."""
        nodes = fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_LABEL
        return (fwk.EventWithHint(fwk.EventResource.NODE, nodes, self.after_node, by_template=True),)

    def after_node(self, pod: fwk.PodInfo, change: fwk.ClusterEvent) -> fwk.QueueingHint:
        """The node is awake, and was not before."""
        label, asleep = self.args.label, self.args.value
        was_awake = change.old is not None and change.old.labels.get(label) != asleep
        return fwk.QueueingHint.of(change.new.labels.get(label) != asleep and not was_awake)

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Points of all nodes, shape (N,): nodes that are awake first."""
        points: fwk.IntArray = np.where(self._asleep(snapshot), 0, fwk.MAX_SCORE).astype(np.int64)
        return points

    def pre_bind_preflight(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> fwk.Status:
        """There is work to do on sleeping nodes only."""
        return fwk.SUCCESS if self.args.wake_url and node in state.read(SleepingNodes).names else fwk.SKIP

    async def pre_bind(self, state: fwk.CycleState, pod: fwk.PodInfo, node: str) -> fwk.Status:
        """Wake the node; a refusal, or no answer, fails the binding, and the pod is tried again."""
        limit = aiohttp.ClientTimeout(total=self.args.timeout_seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                session.post(f"{self.args.wake_url}/{node}") as answer,
            ):
                is_awake, reason = answer.status < 300, answer.reason
            return fwk.SUCCESS if is_awake else fwk.error(f"{node} does not wake: {reason}")
        except (TimeoutError, aiohttp.ClientError) as exc:
            return fwk.error(f"{node} does not wake: {str(exc) or 'no answer in time'}")

    def _asleep(self, snapshot: fwk.Snapshot) -> fwk.BoolArray:
        """Which nodes sleep, shape (N,)."""
        label, value = self.args.label, snapshot.label(self.args.label).find(self.args.value)
        asleep: fwk.BoolArray = (snapshot.label_ids(label) == value) & (value != fwk.ABSENT)
        return asleep
