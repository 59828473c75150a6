"""Shares plugin results that depend on a pod's constraints on nodes among the templates of equal constraints.

Templates differ mostly in labels, owners and amounts. The rest is their constraints on nodes
(:attr:`plimsoll.model.kinds.pod_info.PodTemplate.constraints`). Plugins with ``only_constraints`` run
once for these, until a node or an object other than a pod changes. Their skips, rejections and scores are
then looked up together. Results that need the cycle state are never shared.

Axis letter: N nodes.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from plimsoll.engine.plugin_calls import METER
from plimsoll.engine.profile import Profile
from plimsoll.framework import IntArray, PodTemplate, PreFilterPlugin, ScorePlugin
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PositionArray

#: Approximate maximum memory for these results, per profile.
SHARED_BYTES = 32 * 2**20

#: An array of first rejections, one of sums, and the plugin results that no other constraints share.
BYTES_A_NODE = 2 + 8 + 3 * 8

#: Bytes of the objects around these arrays, approximately.
BESIDES = 2_048


class SharedPreFilter(NamedTuple):
    """The PreFilter plugins that skip for such pods, and the others, in calling order."""

    skipped: frozenset[str]
    others: tuple[PreFilterPlugin, ...]


class SharedVerdicts(NamedTuple):
    """The results of filters that read nodes only.

    Attributes:
        codes: By plugin, shape (N,), read-only.
        accepts_all: Plugins that reject no node.
        failed: Shape (N,): the first plugin that rejects the node; None: none rejects any.
    """

    codes: Mapping[str, IntArray]
    accepts_all: frozenset[str]
    failed: PositionArray | None


class SharedSums(NamedTuple):
    """The sums of scores that read nodes only.

    Attributes:
        plugins: Plugins that take part.
        base: The sum of scores that are constant or not normalized; shape (N,) or one number.
        varying: Plugins whose scores are normalized over the feasible nodes, with their weights.
        raw: The raw scores of these, by plugin, shape (N,), read-only.
    """

    plugins: frozenset[str]
    base: int | IntArray
    varying: tuple[tuple[ScorePlugin, int], ...]
    raw: Mapping[str, IntArray]


class SharedResults(Struct):
    """The known results for templates of equal constraints; None where not computed yet, or not shareable.

    Attributes:
        unscored: Plugins that skip in PreScore.
    """

    pre_filter: SharedPreFilter | None = None
    verdicts: SharedVerdicts | None = None
    unscored: frozenset[str] | None = None
    sums: SharedSums | None = None


class ConstraintResults:
    """Results by constraints, for the present nodes and objects."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self._profile = profile
        self._cluster = cluster
        self._sharing = profile.capabilities.by_constraints
        #: Filters and scores of these plugins whose results need no cycle state.
        self._stateless = self._sharing & profile.capabilities.signed.keys()
        self._skipping = self._sharing - profile.capabilities.noting
        self._answers: dict[bytes, SharedResults] = {}
        self._clocks: tuple[int, int, int] | None = None

    def of(self, template: PodTemplate) -> SharedResults | None:
        """The results for the template's constraints; callers add to them.

        None if nothing is shared: the pod's name matters, the pod is large, so that no results may stay when
        it has gone, or this attempt's plugin calls are timed.
        """
        meter = METER.get()
        if not self._sharing or (meter is not None and meter.clock is not None):
            return None
        constraints = None if template.is_heavy else template.constraints
        if constraints is None:
            return None
        cluster = self._cluster
        clocks = cluster.node_tick, cluster.epoch, cluster.objects.version
        if clocks != self._clocks:
            self._answers.clear()
            self._clocks = clocks
        answers = self._answers.get(constraints)
        if answers is None:
            if len(self._answers) * (BESIDES + BYTES_A_NODE * len(cluster)) > SHARED_BYTES:
                self._answers.clear()
            answers = self._answers[constraints] = SharedResults()
        return answers

    def pre_filtered(self, skipped: Collection[str]) -> SharedPreFilter:
        """The shareable part of a PreFilter in which these plugins skipped."""
        shared = self._skipping.intersection(skipped)
        return SharedPreFilter(
            shared, tuple([each for each in self._profile.pre_filter if each.name not in shared])
        )

    def are_shared(self, plugins: Iterable[str]) -> bool:
        """Whether the node results of these plugins depend on the constraints alone."""
        return self._stateless.issuperset(plugins)

    def skipping(self, plugins: Iterable[str]) -> frozenset[str]:
        """The plugins that skip for every template of equal constraints if they skip for one."""
        return self._sharing.intersection(plugins)
