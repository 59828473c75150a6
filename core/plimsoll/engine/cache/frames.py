"""Shares plugin results that depend on a pod's frame among the templates of that frame.

Templates differ mostly in labels, owners and amounts. The rest is their frame
(:attr:`plimsoll.model.kinds.pod_info.PodTemplate.frame`). Plugins that declare to be ``framed`` run once per
frame, until a node or an object other than a pod changes. Their skips, rejections and scores are then looked
up together. Results that need the cycle state are never shared.

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

#: Approximate maximum memory for results by frame, per profile.
FRAME_BYTES = 32 * 2**20

#: An array of first rejections, one of sums, and the plugin results that no other frame shares.
BYTES_A_NODE = 2 + 8 + 3 * 8


class FramedPreFilter(NamedTuple):
    """The PreFilter plugins that the frame makes skip, and the others, in calling order."""

    skipped: frozenset[str]
    asked: tuple[PreFilterPlugin, ...]


class FramedVerdicts(NamedTuple):
    """The results of filters that read nodes only.

    Attributes:
        codes: By plugin, shape (N,), read-only.
        quiet: Plugins that reject no node.
        failed: Shape (N,): the first plugin that rejects the node; None: none rejects any.
    """

    codes: Mapping[str, IntArray]
    quiet: frozenset[str]
    failed: PositionArray | None


class FramedSums(NamedTuple):
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


class FrameAnswers(Struct):
    """The known results of one frame; None where not computed yet, or not shareable.

    Attributes:
        unscored: Plugins that skip in PreScore.
    """

    pre_filter: FramedPreFilter | None = None
    verdicts: FramedVerdicts | None = None
    unscored: frozenset[str] | None = None
    sums: FramedSums | None = None


class Frames:
    """Results by frame, for the present nodes and objects."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self._profile = profile
        self._cluster = cluster
        self._framed = profile.capabilities.framed
        #: Filters and scores of framed plugins whose results need no cycle state.
        self._stateless = self._framed & profile.capabilities.signed.keys()
        self._quiet = self._framed - profile.capabilities.noting
        self._answers: dict[bytes, FrameAnswers] = {}
        self._mark: tuple[int, int, int] | None = None

    def of(self, template: PodTemplate) -> FrameAnswers | None:
        """The results of the template's frame; callers add to them.

        None if nothing is shared: the pod's name matters, or this attempt's plugin calls are timed.
        """
        meter = METER.get()
        if not self._framed or (meter is not None and meter.clock is not None):
            return None
        frame = template.frame
        if frame is None:
            return None
        cluster = self._cluster
        mark = cluster.node_tick, cluster.epoch, cluster.objects.version
        if mark != self._mark:
            self._answers.clear()
            self._mark = mark
        answers = self._answers.get(frame)
        if answers is None:
            if len(self._answers) * BYTES_A_NODE * max(1, len(cluster)) > FRAME_BYTES:
                self._answers.clear()
            answers = self._answers[frame] = FrameAnswers()
        return answers

    def pre_filtered(self, skipped: Collection[str]) -> FramedPreFilter:
        """The shareable part of a PreFilter in which these plugins skipped."""
        shared = self._quiet.intersection(skipped)
        return FramedPreFilter(
            shared, tuple([each for each in self._profile.pre_filter if each.name not in shared])
        )

    def are_framed(self, plugins: Iterable[str]) -> bool:
        """Whether the node results of these plugins depend on the frame alone."""
        return self._stateless.issuperset(plugins)

    def skipping(self, plugins: Iterable[str]) -> frozenset[str]:
        """The plugins that skip for every template of the frame if they skip for one."""
        return self._framed.intersection(plugins)
