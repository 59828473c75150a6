"""Groups the plugins of a profile by what they read, once per profile.

*Local* plugins read only the node and its pods (:class:`plimsoll.framework.Reads` NODE and ROW): their
results hold until the row changes. *Global* plugins read more: they run again after any change, unless the
version of their results is the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

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
    EasesLocally,
    FailsOnNodes,
    GivesWay,
    NamesNoNode,
    NodeSignature,
    PreparesAttempts,
    Versioned,
    declares_of,
)
from plimsoll.framework.node_classes import ClassedScore
from plimsoll.framework.resource_rules import RuledFilter, RuledScore


@runtime_checkable
class VersionedPlugin(Plugin, Versioned, Protocol):
    """A plugin whose results have a version."""


@runtime_checkable
class FailingFilter(FilterPlugin, FailsOnNodes, Protocol):
    """A filter that may fail for single nodes."""


@runtime_checkable
class PreparingPlugin(Plugin, PreparesAttempts, Protocol):
    """A plugin that does a part of an attempt's work in advance."""


class Stages(Struct, frozen=True, eq=False):
    """The plugins of one profile, in calling order.

    Attributes:
        local_pre_filter: Names of plugins whose PreFilter reads only the node and its pods.
        node_filter: Filters that read node objects only, with their position among all filters.
        node_filter_names: Their names.
        row_filter: Filters that also read a node's own pods, with their position.
        local_score: Score plugins that read only the node and its pods, with their weight.
        node_score_names: Names of those that read node objects only.
        versioned_local: Local plugins whose results have a version.
        versioned_global: The same of plugins that read CLUSTER.
        yielding: Position of the last filter whose rejections do not count if no node is feasible.
        global_names: Plugins that read more than the node in PreFilter or Filter.
        failing: Filters that may fail for single nodes, with their position.
        individual: Whether some plugin reads more of a pod than its template: then each pod is evaluated on
            its own.
    """

    local_pre_filter: frozenset[str]
    global_pre_filter: tuple[PreFilterPlugin, ...]
    node_filter: tuple[tuple[int, FilterPlugin], ...]
    node_filter_names: frozenset[str]
    row_filter: tuple[tuple[int, FilterPlugin], ...]
    global_filter: tuple[tuple[int, FilterPlugin], ...]
    local_pre_score: tuple[PreScorePlugin, ...]
    global_pre_score: tuple[PreScorePlugin, ...]
    local_score: tuple[tuple[ScorePlugin, int], ...]
    node_score_names: frozenset[str]
    row_score: tuple[tuple[ScorePlugin, int], ...]
    global_score: tuple[tuple[ScorePlugin, int], ...]
    global_score_names: frozenset[str]
    versioned_local: tuple[VersionedPlugin, ...]
    versioned_global: tuple[VersionedPlugin, ...]
    yielding: int | None
    global_names: frozenset[str]
    failing: tuple[tuple[int, FailingFilter], ...]
    individual: bool


class Capabilities(Struct, frozen=True, eq=False):
    """What the plugins of one profile declare, by plugin name.

    Attributes:
        signed: Plugins that read NODE and whose results are shared by signature.
        labelled: Local plugins that may read more of a pod than its constraints on nodes and its requests.
        signing: Those among them that say by a signature what they read, with their names; they are not in
            ``labelled``.
        normalizing: Score plugins that normalize.
        linear: Filters that read at most sums of requests: linear ones, and those that read NODE.
        nonlinear: The other filters.
        easing: Filters that may start to accept a node when pods leave it.
        counting: Filters whose rejections the Optimal planner computes itself.
        ruled_filters: Filters that may state their results as rules.
        ruled_scores: Score plugins that may state theirs, and do not normalize.
        classed: Score plugins whose points differ by class of nodes.
        parallel: PreBind plugins that may run simultaneously with adjacent ones.
        by_port: Bind plugins that bind through the port in the state.
        binds_by_port: Whether every pod is bound by such a plugin.
        preparing: Plugins that do work before an attempt.
    """

    signed: Mapping[str, NodeSignature]
    labelled: frozenset[str]
    signing: tuple[tuple[str, NodeSignature], ...]
    normalizing: Mapping[str, NormalizingPlugin]
    linear: frozenset[str]
    nonlinear: frozenset[str]
    easing: Mapping[str, EasesLocally]
    counting: frozenset[str]
    ruled_filters: Mapping[str, RuledFilter]
    ruled_scores: Mapping[str, RuledScore]
    classed: Mapping[str, ClassedScore]
    parallel: frozenset[str]
    by_port: frozenset[str]
    binds_by_port: bool
    preparing: tuple[PreparingPlugin, ...]


def capabilities_of(
    everyone: Iterable[Plugin],
    filters: Sequence[FilterPlugin],
    score: Sequence[ScorePlugin],
    pre_bind: Sequence[PreBindPlugin],
    bind: Sequence[BindPlugin] = (),
) -> Capabilities:
    """Find the capabilities of the plugins."""
    both: tuple[FilterPlugin | ScorePlugin, ...] = (*filters, *score)
    signed = {
        plugin.name: plugin
        for plugin in both
        if isinstance(plugin, NodeSignature) and reads_of(plugin) is Reads.NODE
    }
    linear = frozenset(
        plugin.name for plugin in filters if reads_of(plugin) is Reads.NODE or declares_of(plugin).is_additive
    )
    more = [
        plugin
        for plugin in everyone
        if isinstance(plugin, PreFilterPlugin | FilterPlugin | PreScorePlugin | ScorePlugin)
        and is_local(plugin)
        and not (declares_of(plugin).only_constraints or declares_of(plugin).only_requests)
    ]
    signing = tuple((each.name, signed[each.name]) for each in more if each.name in signed)
    by_port = frozenset(plugin.name for plugin in bind if declares_of(plugin).binds_by_port)
    return Capabilities(
        signed=signed,
        labelled=frozenset(each.name for each in more) - signed.keys(),
        signing=signing,
        normalizing={plugin.name: plugin for plugin in score if isinstance(plugin, NormalizingPlugin)},
        linear=linear,
        nonlinear=frozenset(plugin.name for plugin in filters) - linear,
        easing={plugin.name: plugin for plugin in filters if isinstance(plugin, EasesLocally)},
        counting=frozenset(
            plugin.name
            for plugin in filters
            if declares_of(plugin).counts_resources or declares_of(plugin).counts_domains
        ),
        ruled_filters={plugin.name: plugin for plugin in filters if isinstance(plugin, RuledFilter)},
        ruled_scores={
            plugin.name: plugin
            for plugin in score
            if isinstance(plugin, RuledScore) and not isinstance(plugin, NormalizingPlugin)
        },
        classed={plugin.name: plugin for plugin in score if isinstance(plugin, ClassedScore)},
        parallel=frozenset(plugin.name for plugin in pre_bind if declares_of(plugin).is_parallel),
        by_port=by_port,
        binds_by_port=any(plugin.name in by_port for plugin in bind[:1]),
        preparing=tuple(plugin for plugin in everyone if isinstance(plugin, PreparingPlugin)),
    )


def stages_of(
    pre_filter: Sequence[PreFilterPlugin],
    filters: Sequence[FilterPlugin],
    pre_score: Sequence[PreScorePlugin],
    score: Sequence[ScorePlugin],
    weights: Mapping[str, int],
) -> Stages:
    """Sort each stage's plugins by what they read."""
    placed = tuple(enumerate(filters))
    everyone: dict[str, Plugin] = {each.name: each for each in (*pre_filter, *filters, *pre_score, *score)}
    versioned = [plugin for plugin in everyone.values() if isinstance(plugin, VersionedPlugin)]
    scored = [(plugin, weights[plugin.name]) for plugin in score]
    return Stages(
        local_pre_filter=frozenset(plugin.name for plugin in pre_filter if is_local(plugin)),
        global_pre_filter=tuple(plugin for plugin in pre_filter if not is_local(plugin)),
        node_filter=tuple(each for each in placed if reads_of(each[1]) is Reads.NODE),
        node_filter_names=frozenset(plugin.name for plugin in filters if reads_of(plugin) is Reads.NODE),
        row_filter=tuple(each for each in placed if reads_of(each[1]) is Reads.ROW),
        global_filter=tuple(each for each in placed if reads_of(each[1]) > Reads.ROW),
        local_pre_score=tuple(plugin for plugin in pre_score if is_local(plugin)),
        global_pre_score=tuple(plugin for plugin in pre_score if not is_local(plugin)),
        local_score=tuple(each for each in scored if reads_of(each[0]) <= Reads.ROW),
        node_score_names=frozenset(plugin.name for plugin in score if reads_of(plugin) is Reads.NODE),
        row_score=tuple(each for each in scored if reads_of(each[0]) is Reads.ROW),
        global_score_names=frozenset(each.name for each, _ in scored if reads_of(each) > Reads.ROW),
        global_score=tuple(each for each in scored if reads_of(each[0]) > Reads.ROW),
        versioned_local=tuple(plugin for plugin in versioned if is_local(plugin)),
        versioned_global=tuple(plugin for plugin in versioned if reads_of(plugin) is Reads.CLUSTER),
        yielding=len(filters) - 1 if filters and gives_way(filters[-1]) else None,
        global_names=frozenset(plugin.name for plugin in (*pre_filter, *filters) if not is_local(plugin)),
        failing=tuple((place, each) for place, each in placed if isinstance(each, FailingFilter)),
        individual=any(reads_of(plugin) is Reads.POD for plugin in (*pre_filter, *filters)),
    )


def reads_of(plugin: Plugin) -> Reads:
    """The inputs of the plugin's results."""
    return declares_of(plugin).reads


def gives_way(plugin: Plugin) -> bool:
    """Whether a filter's rejections do not count if no node would be feasible otherwise."""
    return isinstance(plugin, GivesWay) and plugin.gives_way


def names_no_node(plugin: Plugin) -> bool:
    """Whether a PostFilter plugin never nominates."""
    return isinstance(plugin, NamesNoNode) and plugin.names_no_node


def is_local(plugin: Plugin) -> bool:
    """Whether the plugin reads only the node and its pods."""
    return reads_of(plugin) <= Reads.ROW
