"""Shares what plugins say of a pod's frame among the templates that have it.

Templates differ in labels, owners and amounts far more often than in anything else. Their frame
(:attr:`plimsoll.model.kinds.pod_info.PodTemplate.frame`) is what remains. Plugins that declare to be
``framed`` are asked once for each frame, until a node or another object than a pod changes; what they skip,
refuse and score is then looked up together. Answers that the cycle state is needed for are never shared.

Axis letter: N nodes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from plimsoll.engine.plugin_calls import METER
from plimsoll.engine.profile import Profile
from plimsoll.framework import IntArray, PodTemplate, PreFilterPlugin, ScorePlugin
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PositionArray

#: Answers by frame take at most about this much memory a profile.
FRAME_BYTES = 32 * 2**20

#: An array of first refusals, one of sums, and what plugins said that no other frame may share.
BYTES_A_NODE = 2 + 8 + 3 * 8


class FramedPreFilter(NamedTuple):
    """Which PreFilter plugins the frame makes skip, and the others, in calling order."""

    skipped: frozenset[str]
    asked: tuple[PreFilterPlugin, ...]


class FramedVerdicts(NamedTuple):
    """What the filters say that look at nodes only.

    Attributes:
        codes: By plugin, shape (N,), read-only.
        quiet: Those that refuse none.
        failed: Shape (N,): the first of them that refuses the node; None: none refuses any.
    """

    codes: Mapping[str, IntArray]
    quiet: frozenset[str]
    failed: PositionArray | None


class FramedSums(NamedTuple):
    """What the scores amount to that look at nodes only.

    Attributes:
        plugins: Those that take part.
        base: The sum of what is the same for all nodes, or not normalised; shape (N,) or one number.
        varying: Those that are normalised over the feasible nodes, with their weights.
        raw: Of these, by plugin, shape (N,), read-only.
    """

    plugins: frozenset[str]
    base: int | IntArray
    varying: tuple[tuple[ScorePlugin, int], ...]
    raw: Mapping[str, IntArray]


@dataclass(slots=True)
class FrameAnswers:
    """What is known of one frame; None of what has not been asked, or what cannot be shared.

    Attributes:
        unscored: Plugins that skip in PreScore.
    """

    pre_filter: FramedPreFilter | None = None
    verdicts: FramedVerdicts | None = None
    unscored: frozenset[str] | None = None
    sums: FramedSums | None = None


class Frames:
    """Answers by frame, for the nodes and objects as they are now."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self._profile = profile
        self._cluster = cluster
        self._framed = profile.capabilities.framed
        #: Filters and scores of which a framed plugin's answer needs no cycle state.
        self._stateless = self._framed & profile.capabilities.signed.keys()
        self._quiet = self._framed - profile.capabilities.noting
        self._answers: dict[bytes, FrameAnswers] = {}
        self._mark: tuple[int, int, int] | None = None

    def of(self, template: PodTemplate) -> FrameAnswers | None:
        """The answers of the template's frame, to be added to.

        None where nothing is shared: the pod's name matters, or this attempt's plugin calls are timed.
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
        """What can be shared of a PreFilter in which these skipped."""
        shared = self._quiet.intersection(skipped)
        return FramedPreFilter(
            shared, tuple([each for each in self._profile.pre_filter if each.name not in shared])
        )

    def are_framed(self, plugins: Iterable[str]) -> bool:
        """Whether what these say of nodes follows from the frame alone."""
        return self._stateless.issuperset(plugins)

    def skipping(self, plugins: Iterable[str]) -> frozenset[str]:
        """Those of these that skip for every template of the frame if they skip for one."""
        return self._framed.intersection(plugins)
