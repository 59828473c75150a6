"""Groups the plugins of a profile by what they read, once for each profile.

*Near* plugins look no further than the node and its pods (:class:`plimsoll.framework.Reads` NODE and ROW):
what they said holds until the row changes. *Far* ones are asked again after any change.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from plimsoll.framework import (
    BindPlugin,
    FilterPlugin,
    NormalizingPlugin,
    Plugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)
from plimsoll.framework.capabilities import (
    BindsByPort,
    CountsDomains,
    CountsResources,
    Dated,
    EasesLocally,
    FailsOnNodes,
    Framed,
    GivesWay,
    Linear,
    Marked,
    NamesNoNode,
    NodeSignature,
    NotesSkips,
    PreparesAttempts,
    RunsInParallel,
    reads_of,
)
from plimsoll.framework.resource_rules import RuledFilter, RuledScore


@runtime_checkable
class DatedPlugin(Plugin, Dated, Protocol):
    """A plugin that tells whether its answers still hold."""


@runtime_checkable
class FailingFilter(FilterPlugin, FailsOnNodes, Protocol):
    """A filter that may be unable to answer."""


@runtime_checkable
class MarkedPlugin(Plugin, Marked, Protocol):
    """A plugin that tells what else its answers follow from."""


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """Plugins of one profile, in calling order.

    Attributes:
        near_pre_filter: Names of those whose PreFilter looks no further than the node.
        node_filter: Filters that look at node objects only, with their position among all filters.
        node_filter_names: Their names.
        row_filter: Filters that look at a node's own pods as well, likewise.
        near_score: Score plugins that look no further than the node, with their weight.
        node_score_names: Names of those that look at node objects only.
        marked: Plugins that look at a node's own pods, and of a template at something that changes.
        yielding: Position of the filter whose refusals do not count where no node is feasible; the last one.
        dated: Plugins that look further than the node and tell whether their answers still hold.
        far_names: Plugins that look further than the node in PreFilter or Filter.
        failing: Filters that may be unable to answer for a node, with their position.
        individual: Whether some plugin looks at more of a pod than its template: then nothing is kept from
            one pod to the next without asking.
    """

    near_pre_filter: frozenset[str]
    far_pre_filter: tuple[PreFilterPlugin, ...]
    node_filter: tuple[tuple[int, FilterPlugin], ...]
    node_filter_names: frozenset[str]
    row_filter: tuple[tuple[int, FilterPlugin], ...]
    far_filter: tuple[tuple[int, FilterPlugin], ...]
    near_pre_score: tuple[PreScorePlugin, ...]
    far_pre_score: tuple[PreScorePlugin, ...]
    near_score: tuple[tuple[ScorePlugin, int], ...]
    node_score_names: frozenset[str]
    row_score: tuple[tuple[ScorePlugin, int], ...]
    far_score: tuple[tuple[ScorePlugin, int], ...]
    far_score_names: frozenset[str]
    marked: tuple[MarkedPlugin, ...]
    yielding: int | None
    dated: tuple[DatedPlugin, ...]
    far_names: frozenset[str]
    failing: tuple[tuple[int, FailingFilter], ...]
    individual: bool


@dataclass(frozen=True, slots=True, eq=False)
class Capabilities:
    """What the plugins of one profile declare, by plugin name.

    Attributes:
        signed: Plugins that read NODE and whose answers are shared by signature.
        framed: Near plugins whose answers templates of one frame share.
        noting: Plugins whose PreFilter is always called.
        normalizing: Score plugins that normalise.
        linear: Filters that know sums of requests at most: linear ones, and those that read NODE.
        nonlinear: The other filters.
        easing: Filters that may accept a node whatever pods leave it.
        counting: Filters whose refusals the Optimal planner works out itself.
        ruled_filters: Filters that may state their answers as rules.
        ruled_scores: Score plugins that may, and do not normalise.
        parallel: PreBind plugins that may run simultaneously with their neighbours.
        binds_by_port: Whether every pod is bound through the port in its state.
        preparing: Plugins that work something out before an attempt.
    """

    signed: Mapping[str, NodeSignature]
    framed: frozenset[str]
    noting: frozenset[str]
    normalizing: Mapping[str, NormalizingPlugin]
    linear: frozenset[str]
    nonlinear: frozenset[str]
    easing: Mapping[str, EasesLocally]
    counting: frozenset[str]
    ruled_filters: Mapping[str, RuledFilter]
    ruled_scores: Mapping[str, RuledScore]
    parallel: frozenset[str]
    binds_by_port: bool
    preparing: tuple[PreparesAttempts, ...]


class StandingVerdicts(NamedTuple):
    """What is known of plugins that look further than the node, by name.

    Attributes:
        plugins: Those whose answers hold.
        by_row: Those of all of whom that is not said about the rows that changed.
    """

    plugins: frozenset[str]
    by_row: frozenset[str]


def capabilities_of(
    everyone: Iterable[Plugin],
    filters: Sequence[FilterPlugin],
    score: Sequence[ScorePlugin],
    pre_bind: Sequence[PreBindPlugin],
    bind: Sequence[BindPlugin] = (),
) -> Capabilities:
    """Find the capabilities of the plugins."""
    both: tuple[FilterPlugin | ScorePlugin, ...] = (*filters, *score)
    linear = frozenset(
        plugin.name
        for plugin in filters
        if plugin.reads is Reads.NODE or (isinstance(plugin, Linear) and plugin.additive)
    )
    return Capabilities(
        signed={
            plugin.name: plugin
            for plugin in both
            if isinstance(plugin, NodeSignature) and plugin.reads is Reads.NODE
        },
        framed=frozenset(
            plugin.name
            for plugin in everyone
            if isinstance(plugin, Framed) and plugin.framed and is_near(plugin)
        ),
        noting=frozenset(
            plugin.name for plugin in everyone if isinstance(plugin, NotesSkips) and plugin.notes_skips
        ),
        normalizing={plugin.name: plugin for plugin in score if isinstance(plugin, NormalizingPlugin)},
        linear=linear,
        nonlinear=frozenset(plugin.name for plugin in filters) - linear,
        easing={plugin.name: plugin for plugin in filters if isinstance(plugin, EasesLocally)},
        counting=frozenset(
            plugin.name
            for plugin in filters
            if (isinstance(plugin, CountsResources) and plugin.counts_resources)
            or (isinstance(plugin, CountsDomains) and plugin.counts_domains)
        ),
        ruled_filters={plugin.name: plugin for plugin in filters if isinstance(plugin, RuledFilter)},
        ruled_scores={
            plugin.name: plugin
            for plugin in score
            if isinstance(plugin, RuledScore) and not isinstance(plugin, NormalizingPlugin)
        },
        parallel=frozenset(
            plugin.name for plugin in pre_bind if isinstance(plugin, RunsInParallel) and plugin.is_parallel
        ),
        binds_by_port=any(isinstance(plugin, BindsByPort) and plugin.binds_by_port for plugin in bind[:1]),
        preparing=tuple(plugin for plugin in everyone if isinstance(plugin, PreparesAttempts)),
    )


def stages_of(
    pre_filter: Sequence[PreFilterPlugin],
    filters: Sequence[FilterPlugin],
    pre_score: Sequence[PreScorePlugin],
    score: Sequence[ScorePlugin],
    weights: Mapping[str, int],
) -> Stages:
    """Sort the plugins of each stage."""
    placed = tuple(enumerate(filters))
    everyone: dict[str, Plugin] = {each.name: each for each in (*pre_filter, *filters, *pre_score, *score)}
    scored = [(plugin, weights[plugin.name]) for plugin in score]
    return Stages(
        near_pre_filter=frozenset(plugin.name for plugin in pre_filter if is_near(plugin)),
        far_pre_filter=tuple(plugin for plugin in pre_filter if not is_near(plugin)),
        node_filter=tuple(each for each in placed if each[1].reads is Reads.NODE),
        node_filter_names=frozenset(plugin.name for plugin in filters if plugin.reads is Reads.NODE),
        row_filter=tuple(each for each in placed if each[1].reads is Reads.ROW),
        far_filter=tuple(each for each in placed if each[1].reads > Reads.ROW),
        near_pre_score=tuple(plugin for plugin in pre_score if is_near(plugin)),
        far_pre_score=tuple(plugin for plugin in pre_score if not is_near(plugin)),
        near_score=tuple(each for each in scored if each[0].reads <= Reads.ROW),
        node_score_names=frozenset(plugin.name for plugin in score if plugin.reads is Reads.NODE),
        row_score=tuple(each for each in scored if each[0].reads is Reads.ROW),
        far_score_names=frozenset(each.name for each, _ in scored if each.reads > Reads.ROW),
        far_score=tuple(each for each in scored if each[0].reads > Reads.ROW),
        marked=tuple(
            plugin for plugin in everyone.values() if isinstance(plugin, MarkedPlugin) and is_near(plugin)
        ),
        yielding=len(filters) - 1 if filters and gives_way(filters[-1]) else None,
        dated=tuple(
            plugin
            for plugin in everyone.values()
            if isinstance(plugin, DatedPlugin) and reads_of(plugin) is Reads.CLUSTER
        ),
        far_names=frozenset(plugin.name for plugin in (*pre_filter, *filters) if not is_near(plugin)),
        failing=tuple((place, each) for place, each in placed if isinstance(each, FailingFilter)),
        individual=any(reads_of(plugin) is Reads.POD for plugin in (*pre_filter, *filters)),
    )


def gives_way(plugin: Plugin) -> bool:
    """Whether a filter's refusals do not count where no node would be feasible otherwise."""
    return isinstance(plugin, GivesWay) and plugin.gives_way


def names_no_node(plugin: Plugin) -> bool:
    """Whether a PostFilter plugin nominates no pod."""
    return isinstance(plugin, NamesNoNode) and plugin.names_no_node


def is_near(plugin: Plugin) -> bool:
    """Whether it looks no further than the node."""
    return reads_of(plugin) <= Reads.ROW
