"""A profile's plugins by how far they look: what lanes ask for every pod, found out once a profile.

*Near* plugins look no further than the node and its pods (:class:`plimsoll.framework.Reads` NODE and ROW):
what they said holds until the row changes. *Far* ones are asked again after any change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.framework import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """Plugins of one profile, in calling order.

    Attributes:
        near_pre_filter: Names of those whose PreFilter looks no further than the node.
        far_pre_filter: The others.
        node_filter: Filters that look at node objects only, with their position among all filters.
        row_filter: Filters that look at a node's own pods as well, likewise.
        far_filter: The others, likewise.
        near_pre_score: As for PreFilter.
        far_pre_score: As for PreFilter.
        near_score: Score plugins that look no further than the node, with their weight.
        far_score: The others, likewise.
        individual: Whether some plugin looks at more of a pod than its template: then nothing is kept from
            one pod to the next without asking.
    """

    near_pre_filter: frozenset[str]
    far_pre_filter: tuple[PreFilterPlugin, ...]
    node_filter: tuple[tuple[int, FilterPlugin], ...]
    row_filter: tuple[tuple[int, FilterPlugin], ...]
    far_filter: tuple[tuple[int, FilterPlugin], ...]
    near_pre_score: tuple[PreScorePlugin, ...]
    far_pre_score: tuple[PreScorePlugin, ...]
    near_score: tuple[tuple[ScorePlugin, int], ...]
    far_score: tuple[tuple[ScorePlugin, int], ...]
    individual: bool


def stages_of(
    pre_filter: Sequence[PreFilterPlugin],
    filters: Sequence[FilterPlugin],
    pre_score: Sequence[PreScorePlugin],
    score: Sequence[ScorePlugin],
    weights: Mapping[str, int],
) -> Stages:
    """Sort the plugins of each stage."""
    placed = tuple(enumerate(filters))
    scored = [(plugin, weights[plugin.name]) for plugin in score]
    return Stages(
        near_pre_filter=frozenset(plugin.name for plugin in pre_filter if is_near(plugin)),
        far_pre_filter=tuple(plugin for plugin in pre_filter if not is_near(plugin)),
        node_filter=tuple(each for each in placed if each[1].reads is Reads.NODE),
        row_filter=tuple(each for each in placed if each[1].reads is Reads.ROW),
        far_filter=tuple(each for each in placed if each[1].reads > Reads.ROW),
        near_pre_score=tuple(plugin for plugin in pre_score if is_near(plugin)),
        far_pre_score=tuple(plugin for plugin in pre_score if not is_near(plugin)),
        near_score=tuple(each for each in scored if each[0].reads <= Reads.ROW),
        far_score=tuple(each for each in scored if each[0].reads > Reads.ROW),
        individual=any(reads_of(plugin) is Reads.POD for plugin in (*pre_filter, *filters)),
    )


def reads_of(plugin: Plugin) -> Reads:
    """What a plugin's answers depend on; everything, when it does not say."""
    reads: Reads = getattr(plugin, "reads", Reads.POD)
    return reads


def is_near(plugin: Plugin) -> bool:
    """Whether it looks no further than the node."""
    return reads_of(plugin) <= Reads.ROW
