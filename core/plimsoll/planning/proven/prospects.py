"""Answers strategies' questions about places with the scheduler's view, on the fork of a plan."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from weakref import ReferenceType, ref

from plimsoll.engine.gangs.placement import place_together
from plimsoll.framework import MAX_SCORE, PluginError, PodInfo, PodTemplate, WhatIf
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.framework.descheduling.prospects import Outlook
from plimsoll.framework.extension_points import FilterPlugin
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import RowArray
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.planning.aftermath import ForkAttempt
from plimsoll.planning.fork_schedulers import ForkSchedulers
from plimsoll.planning.load.load_lines import LoadLines
from plimsoll.planning.moves import RebalancingConfig, replacement_of, replacement_uid
from plimsoll.planning.proven.target_choice import TargetRows


class ForkProspects:
    """Answers strategies' questions about places.

    Attributes:
        targets: The nodes that may be targets.
    """

    def __init__(self, fork: Cluster, rebalancing: RebalancingConfig, schedulers: ForkSchedulers) -> None:
        self._fork = fork
        self._rebalancing = rebalancing
        self._schedulers = schedulers
        self.targets = TargetRows(fork, rebalancing.is_target)
        self._known: dict[PodTemplate, tuple[int, RowArray | None]] = {}
        self._filters: dict[str, Mapping[str, FilterPlugin] | None] = {}
        self._load_lines: ReferenceType[LoadLines] | None = None

    @property
    def load_lines(self) -> LoadLines | None:
        """The load limits of nodes, while the plan has them; they and this refer to one context."""
        return None if self._load_lines is None else self._load_lines()

    @load_lines.setter
    def load_lines(self, lines: LoadLines) -> None:
        self._load_lines = ref(lines)

    def outlook(self, pod: PodInfo) -> Outlook | None:
        """Where its replacement could go; None if an extender or another scheduler decides."""
        scheduler = self._schedulers.deciding(pod)
        ranking = None if scheduler is None else self._schedulers.ranked(pod)
        if scheduler is None or ranking is None:
            return None
        totals = dict(zip(ranking.nodes, ranking.totals.tolist(), strict=True))
        return Outlook(totals, MAX_SCORE * sum(scheduler.profile.weights.values()))

    @contextmanager
    def attempt(self) -> Iterator[ForkAttempt]:
        """Simulated moves."""
        attempt = ForkAttempt(self._fork)
        try:
            yield attempt
        finally:
            attempt.undo()

    def feasible(self, pod: PodInfo) -> RowArray | None:
        """Rows of the feasible nodes for a pod like this one, cached until something changes."""
        if pod.stands_in_for is not None:
            return None
        tick, rows = self._known.get(pod.template, (-1, None))
        if tick != self._fork.tick:
            rows = self._feasible(pod)
            self._known[pod.template] = self._fork.tick, rows
        return None if rows is None else rows[self.targets.admitted[rows]]

    def is_target(self, node: str) -> bool:
        """Whether pods may be moved to the node of this name at all."""
        return bool(self.targets.admitted[self._fork.rows[node]])

    def what_if(self, pod: PodInfo) -> WhatIf | None:
        """The filter results for a pending pod if other pods left."""
        scheduler = self._schedulers.deciding(pod)
        try:
            return None if scheduler is None else scheduler.what_if(pod)
        except PluginError:
            return None

    def too_hot(self, node: str, pod: PodInfo | None = None) -> Refusal | None:
        """Why a measured node's use keeps it from accepting a pod, or any; None if it is not measured."""
        lines = self.load_lines
        return None if lines is None else lines.too_hot(node, pod)

    def filters(self, pod: PodInfo) -> Mapping[str, FilterPlugin] | None:
        """The filter plugins, keyed by name, of the profile that places the pod; None if none is known."""
        name = pod.pod.spec.scheduler_name
        if name not in self._filters:
            profile = self._rebalancing.profile_of(pod)
            self._filters[name] = None if profile is None else {each.name: each for each in profile.filter}
        return self._filters[name]

    def near(self, pod: PodInfo, group: PodGroup | None) -> tuple[str, ...]:
        """The labels by the profile that places the pod."""
        scheduler = self._schedulers.serving(pod)
        return () if scheduler is None else scheduler.profile.groups.near(group)

    def together(
        self, pods: Sequence[PodInfo], key: str, inside: Sequence[tuple[str, str]] = ()
    ) -> Mapping[str, str] | None:
        """The places that the scheduler's search for groups finds; None without one for each."""
        schedulers = [self._schedulers.deciding(pod) for pod in pods]
        members = [
            (replacement_of(pod, self._fork), scheduler)
            for pod, scheduler in zip(pods, schedulers, strict=True)
            if scheduler is not None
        ]
        if len(members) < len(pods):
            return None
        found = place_together(members, self._fork, len(members), within=key, inside=inside)
        if not found.is_feasible:
            return None
        nodes: dict[str, str] = {each.decision.pod.uid: each.node for each in found.placements}
        return {pod.uid: nodes[replacement_uid(pod)] for pod in pods}

    def _feasible(self, pod: PodInfo) -> RowArray | None:
        scheduler = self._schedulers.deciding(pod)
        if scheduler is None:
            return None
        try:
            return scheduler.filtered(replacement_of(pod, self._fork)).rows
        except PluginError:
            return None
