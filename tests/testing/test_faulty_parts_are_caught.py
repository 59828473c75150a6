"""Plugins and strategies with one fault each, and the law that an author's inherited tests fail by."""

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import Phase, settings

from plimsoll.framework import (
    MAX_SCORE,
    SUCCESS,
    ActionType,
    CycleState,
    Declares,
    EventWithHint,
    NoArgs,
    NodeFilter,
    NodeScore,
    PluginError,
    QueueingHint,
    Reads,
    all_feasible,
    unschedulable,
)
from plimsoll.framework.descheduling import Candidate, Strategy, StrategyKind
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.conformance import FilterPluginConformance, ScorePluginConformance
from plimsoll.testing.drawn_worlds import LAWFUL
from plimsoll.testing.strategy_conformance import StrategyConformance

QUICK = settings(LAWFUL, max_examples=60, phases=[Phase.generate], database=None, derandomize=True)

ZONE = "topology.kubernetes.io/zone"
REFUSED = unschedulable("no")


class Zoned(NodeFilter):
    """Refuses nodes with a zone; what others of these tests change one thing of."""

    name: ClassVar[str] = "Zoned"

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        return REFUSED if ZONE in node.labels else SUCCESS


class ReadsPodsAsNode(Zoned):
    name: ClassVar = "ReadsPodsAsNode"
    declares: ClassVar = Declares(reads=Reads.NODE)

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        return REFUSED if node.pods else SUCCESS


class ReadsOthersAsRow(Zoned):
    name: ClassVar = "ReadsOthersAsRow"
    declares: ClassVar = Declares(reads=Reads.ROW)

    def filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        crowded = snapshot.whole.requested[:, 3].sum() > 4
        return np.full(len(snapshot), int(crowded), dtype=np.int64)

    def refusal(self, code: int, state: Any, pod: Any) -> Any:
        return REFUSED


class ReadsTheName(Zoned):
    name: ClassVar = "ReadsTheName"
    declares: ClassVar = Declares(reads=Reads.CLUSTER)

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        return SUCCESS if pod.name == "renamed" else REFUSED


class Placed(dict[str, int]):
    """Pods by node."""

    def clone(self) -> "Placed":
        return Placed(self)


class SumsOnce(NodeFilter):
    """Counts pods in PreFilter, and has no methods for simulated ones."""

    name: ClassVar[str] = "SumsOnce"

    def pre_filter(self, state: CycleState, pod: Any, snapshot: Any) -> Any:
        state.write(Placed({node.name: len(snapshot.pods(at)) for at, node in enumerate(snapshot.nodes)}))
        return SUCCESS

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        return REFUSED if state.read(Placed)[node.name] > 1 else SUCCESS


class NeverForgets(SumsOnce):
    """Counts added pods, and removed ones too."""

    name: ClassVar = "NeverForgets"

    def add_pod(self, state: Any, pod: Any, added: Any, node: int, snapshot: Any) -> Any:
        state.read(Placed)[snapshot.node(node).name] += 1
        return SUCCESS

    def remove_pod(self, *_: Any) -> Any:
        return SUCCESS


class HintsSkip(Zoned):
    name: ClassVar = "HintsSkip"

    def events_to_register(self) -> Any:
        return (EventWithHint("Node", ActionType.ALL, lambda *_: QueueingHint.SKIP),)


class NoEvents(Zoned):
    name: ClassVar = "NoEvents"

    def events_to_register(self) -> Any:
        return ()


class ReadsRacks(Zoned):
    name: ClassVar = "ReadsRacks"

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        return REFUSED if "rack" in node.labels else SUCCESS


class ReturnsNone(Zoned):
    name: ClassVar = "ReturnsNone"

    def pre_filter(self, *_: Any) -> Any:
        return None


class Relabels(Zoned):
    name: ClassVar = "Relabels"

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        node.labels["seen"] = "true"
        return SUCCESS


class Remembers(Zoned):
    """Its answers depend on what it was asked before."""

    name: ClassVar = "Remembers"
    asked: ClassVar[list[str]] = []

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        self.asked.append(node.name)
        return REFUSED if len(self.asked) % 2 else SUCCESS


class TakesRowsForPositions(Zoned):
    name: ClassVar = "TakesRowsForPositions"
    declares: ClassVar = Declares(reads=Reads.NODE)

    def filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        codes = all_feasible(snapshot)
        for position in range(len(snapshot)):
            codes[position] = ZONE in snapshot.whole.node(position).labels
        return codes

    def refusal(self, code: int, state: Any, pod: Any) -> Any:
        return REFUSED


class Flat(NodeScore):
    name: ClassVar = "Flat"

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 50


class TooHigh(NodeScore):
    name: ClassVar = "TooHigh"

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return MAX_SCORE + len(node.pods)


class AsksFirst(Strategy):
    """Proposes all pods that may go; what others change one thing of."""

    name: ClassVar = "AsksFirst"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = NoArgs

    def candidates(self, context: Any) -> Any:
        for node in context.nodes:
            for pod in context.pods(node):
                if context.may_go(pod, "why"):
                    yield self.made(pod, node)

    def made(self, pod: Any, node: str) -> Any:
        return Candidate(pod, node, "why")


class IgnoresProtections(AsksFirst):
    name: ClassVar = "IgnoresProtections"

    def candidates(self, context: Any) -> Any:
        for node in context.nodes:
            for pod in context.pods(node):
                yield Candidate(pod, node, "why")


class YieldsPods(AsksFirst):
    name: ClassVar = "YieldsPods"

    def made(self, pod: Any, node: str) -> Any:
        return pod


class NamesNoNode(AsksFirst):
    name: ClassVar = "NamesNoNode"

    def made(self, pod: Any, node: str) -> Any:
        return Candidate(pod, "nowhere", "why")


class ReturnsAList(AsksFirst):
    name: ClassVar = "ReturnsAList"

    def candidates(self, context: Any) -> Any:
        return []


class NeverProposes(AsksFirst):
    name: ClassVar = "NeverProposes"

    def candidates(self, context: Any) -> Any:
        yield from (each for each in context.unplaced.pending() if "old" in each.labels)


class Insists(AsksFirst):
    name: ClassVar = "Insists"

    def candidates(self, context: Any) -> Any:
        for _ in range(3):
            yield from AsksFirst.candidates(self, context)


FILTERS = [
    (ReadsPodsAsNode, "no_more_is_read_than_is_declared"),
    (ReadsOthersAsRow, "no_more_is_read_than_is_declared"),
    (ReadsTheName, "no_more_is_read_than_is_declared"),
    (SumsOnce, "pods_added_and_removed_in_a_simulation_count_as_if_recounted"),
    (NeverForgets, "pods_added_and_removed_in_a_simulation_count_as_if_recounted"),
    (HintsSkip, "what_helps_a_rejected_pod_requeues_it"),
    (NoEvents, "what_helps_a_rejected_pod_requeues_it"),
    (ReadsRacks, "some_nodes_are_refused_and_some_are_not"),
    (ReturnsNone, "refusals_are_statuses_with_reasons"),
    (Relabels, "the_cluster_is_left_alone"),
    (Remembers, "the_same_question_gets_the_same_answer"),
    (TakesRowsForPositions, "some_nodes_are_judged_as_among_all"),
]
SCORES = [(Flat, "some_nodes_get_other_points_than_others"), (TooHigh, "scores_lie_in_range")]
STRATEGIES = [
    (IgnoresProtections, "protected_pods_are_not_proposed"),
    (YieldsPods, "candidates_are_pods_of_their_nodes_with_a_reason"),
    (NamesNoNode, "candidates_are_pods_of_their_nodes_with_a_reason"),
    (ReturnsAList, "candidates_are_pods_of_their_nodes_with_a_reason"),
    (NeverProposes, "some_pods_are_proposed"),
    (Insists, "refusals_end"),
]


def broken(laws: type[Any], part: str, subject: Any, law: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the law says of the subject, "" if it holds."""
    test = getattr(laws, f"test_{law}")
    if hasattr(test, "hypothesis"):
        monkeypatch.setattr(test, "_hypothesis_internal_use_settings", QUICK)
    made = type("Laws", (laws,), {part: subject(NoArgs())})()
    try:
        getattr(made, f"test_{law}")()
    except (AssertionError, PluginError, TypeError) as exc:
        return str(exc) or repr(exc)
    return ""


@pytest.mark.parametrize(("plugin", "law"), FILTERS)
def test_a_faulty_filter_breaks_a_law(plugin: Any, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(FilterPluginConformance, "plugin", plugin, law, monkeypatch)


@pytest.mark.parametrize(("plugin", "law"), SCORES)
def test_a_faulty_score_breaks_a_law(plugin: Any, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(ScorePluginConformance, "plugin", plugin, law, monkeypatch)


@pytest.mark.parametrize(("strategy", "law"), STRATEGIES)
def test_a_faulty_strategy_breaks_a_law(strategy: Any, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(StrategyConformance, "strategy", strategy, law, monkeypatch)


class TestFilterWithoutAFault(FilterPluginConformance):
    plugin = Zoned(NoArgs())


class TestStrategyWithoutAFault(StrategyConformance):
    strategy = AsksFirst(NoArgs())


@pytest.mark.parametrize("plugin", [ReturnsNone, Relabels])
def test_what_no_operator_would_take_names_the_plugin(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the status of its policy."""
    law = "refusals_are_statuses_with_reasons"

    assert plugin.name in broken(FilterPluginConformance, "plugin", plugin, law, monkeypatch)


@pytest.mark.parametrize(("builder", "word"), [(a_pod, "terminating"), (a_node, "creationtimestamp")])
def test_a_builder_refuses_a_word_that_nothing_reads(builder: Any, word: str) -> None:
    """A misspelt argument, and what a law's `pods` say in the words of another builder."""
    with pytest.raises(TypeError, match=f"{builder.__name__}.. has no argument '{word}'"):
        builder("n", **{word: True})


def test_hooks_show_a_plugin_what_it_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes with racks, once the test class says so."""
    laws = type("Racked", (FilterPluginConformance,), {"nodes": ({}, {"labels": {"rack": "a"}})})

    assert not broken(laws, "plugin", ReadsRacks, "some_nodes_are_refused_and_some_are_not", monkeypatch)
