"""Recorded decisions are decided again, and every difference is named."""

import copy
import gzip
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from not_compared import RECORDINGS, needs_recordings
from plimsoll.framework import Declares, FilterPlugin, Reads, Registry, ScorePlugin, unschedulable
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.plugins.default_binder import DefaultBinder
from plimsoll.plugins.node_name import NodeName
from plimsoll.plugins.node_resources_fit import NodeResourcesFit
from plimsoll.plugins.priority_sort import PrioritySort
from plimsoll.plugins.scheduling_gates import SchedulingGates
from recordings import replay
from recordings.later_fixes import LaterFix
from recordings.scheduler import Case, read_cases, situation

REGISTRY = Registry([DefaultBinder, NodeName, NodeResourcesFit, PrioritySort, SchedulingGates])


def a_node(name: Any, cpu: Any) -> Any:
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": 10}}}


def a_case(**expected: Any) -> Any:
    """Two nodes, one too small; a pod of one cpu on either.

    big: cpu (4000-1000-1000)*100//4000 = 50, memory (8Gi - 2*200Mi)*100//8Gi = 95, (50+95)//2 = 72.
    """
    return Case(
        "small",
        "small-0",
        {
            "nodes": [a_node("big", "4"), a_node("little", "500m")],
            "pods": [
                {
                    "metadata": {"name": "other", "namespace": "a", "uid": "u1"},
                    "spec": {"nodeName": "big", "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
                },
                {
                    "metadata": {"name": "gone", "namespace": "a", "uid": "u2"},
                    "spec": {"nodeName": "big", "containers": [{"resources": {"requests": {"cpu": "3"}}}]},
                    "status": {"phase": "Succeeded"},
                },
            ],
            "pod": {
                "metadata": {"name": "pod", "namespace": "a", "uid": "u3"},
                "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]},
            },
        },
        {
            "result": "scheduled",
            "filter": {
                "little": {
                    "plugin": "NodeResourcesFit",
                    "code": "UnschedulableAndUnresolvable",
                    "reasons": ["Insufficient cpu"],
                }
            },
            "feasible": ["big"],
            "scores": {"plugins": ["NodeResourcesFit"], "weights": [1], "nodes": {"big": [72, [72], [72]]}},
            "hosts": ["big"],
            **expected,
        },
    )


def mismatches(case: Any) -> Any:
    return list(replay.compare(case, situation(case, REGISTRY, DEFAULT_PLUGINS)))


def test_an_equal_decision_has_no_mismatch() -> None:
    """Terminal pods take nothing, pods on nodes take what they request."""
    assert mismatches(a_case()) == []


def test_without_nodes_nothing_is_evaluated() -> None:
    """The message of a pod that some PreFilter would reject only says that there are no nodes."""
    given = copy.deepcopy(dict(a_case().given)) | {"nodes": []}
    given["pod"]["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]
    expected = {
        "result": "unschedulable",
        "message": "no nodes available to schedule pods",
        "nominating": "",
    }
    case = Case("small", "small-0", given, expected)

    assert list(replay.compare(case, situation(case, Registry(IN_TREE), DEFAULT_PLUGINS))) == []


def test_a_waiting_pod_is_nominated_unless_something_holds_it_back() -> None:
    """Gates do, if the profile asks for them."""
    given = copy.deepcopy(dict(a_case().given))
    gated = {
        "metadata": {"name": "gated", "namespace": "a", "uid": "u4"},
        "spec": {"schedulingGates": [{"name": "g"}], "containers": [{}]},
        "status": {"nominatedNodeName": "big"},
    }
    given["pods"].append(gated)
    off = {"plugins": {"multiPoint": {"disabled": [{"name": "SchedulingGates"}]}}}

    def nominated(**more: Any) -> Any:
        made = situation(Case("small", "small-0", given | more, {}), REGISTRY, DEFAULT_PLUGINS)
        return set(made.scheduler.nominator.by_node)

    assert nominated() == set()
    assert nominated(config={"profiles": [off]}) == {"big"}


def test_every_candidate_for_preemption_is_tried() -> None:
    """A recording did, whatever share its profile asks for."""
    given = a_case().given
    args = {"name": "DefaultPreemption", "args": {"minCandidateNodesAbsolute": 1}}
    case = Case("small", "small-0", given | {"config": {"profiles": [{"pluginConfig": [args]}]}}, {})

    profile = situation(case, Registry(IN_TREE), DEFAULT_PLUGINS).scheduler.profile

    (preemption,) = [each for each in profile.post_filter if each.name == "DefaultPreemption"]
    assert preemption.args.min_candidate_nodes_percentage == 100  # type: ignore[attr-defined] # known to exist in this test
    assert preemption.args.min_candidate_nodes_absolute == 1  # type: ignore[attr-defined] # known to exist in this test


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        ({"result": "unschedulable"}, "small-0 result: expected 'unschedulable', got 'scheduled'"),
        ({"hosts": ["little"]}, "small-0 host: expected ['little'], got 'big'"),
        ({"feasible": ["big", "little"]}, "small-0 feasible: expected ['big', 'little'], got ['big']"),
        (
            {"filter": {}},
            (
                "small-0 node=little plugin=NodeResourcesFit filter: expected None, got {'plugin': "
                "'NodeResourcesFit', 'code': 'UnschedulableAndUnresolvable', 'reasons': ['Insufficient cpu']}"
            ),
        ),
        (
            {"scores": {"plugins": ["NodeResourcesFit"], "weights": [1], "nodes": {"big": [73, [73], [73]]}}},
            (
                "small-0 node=big plugin=NodeResourcesFit raw and normalised score: "
                "expected (73, 73), got (72, 72)"
            ),
        ),
        (
            {"scores": {"plugins": ["NodeResourcesFit"], "weights": [2], "nodes": {"big": [72, [72], [72]]}}},
            "small-0 score plugins: expected {'NodeResourcesFit': 2}, got {'NodeResourcesFit': 1}",
        ),
    ],
)
def test_a_difference_names_case_node_plugin_expected_and_got(expected: Any, line: Any) -> None:
    """One line each."""
    assert line in [str(mismatch) for mismatch in mismatches(a_case(**expected))]


def test_a_rejection_is_compared_with_its_message_and_plugins() -> None:
    """The sentence word for word, the plugins as a set, and the nomination that is taken back."""
    case = a_case()
    given = copy.deepcopy(dict(case.given))
    given["nodes"] = given["nodes"][1:]
    expected = {
        "result": "unschedulable",
        "filter": case.expected["filter"],
        "feasible": [],
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
        "unschedulablePlugins": ["NodeResourcesFit"],
        "nominating": "",
    }

    assert mismatches(Case("small", "x", given, expected)) == []
    assert [each.what for each in mismatches(Case("small", "x", given, {**expected, "message": "?"}))] == [
        "message"
    ]
    assert [
        each.what for each in mismatches(Case("small", "x", given, {**expected, "nominating": "little"}))
    ] == ["nominating"]


def test_gated_and_deleted_pods_are_not_decided() -> None:
    """A gate is reported with the plugin that holds the pod; a pod that is going is skipped."""
    gated, going = copy.deepcopy(dict(a_case().given)), copy.deepcopy(dict(a_case().given))
    gated["pod"]["spec"]["schedulingGates"] = [{"name": "g"}]
    going["pod"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {
        "plugin": "SchedulingGates",
        "code": "UnschedulableAndUnresolvable",
        "reasons": ["waiting for scheduling gates: [g]"],
    }

    assert mismatches(Case("s", "gated", gated, {"result": "gated", "preEnqueue": status})) == []
    assert mismatches(Case("s", "going", going, {"result": "skipped"})) == []


class Picky(FilterPlugin, ScorePlugin):
    name = "Picky"
    declares = Declares(reads=Reads.NODE)

    def __init__(self, args: Any) -> None:
        pass

    def filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return snapshot.label_ids("good") * 0 + 1

    def refusal(self, code: Any, state: Any, pod: Any) -> Any:
        return unschedulable("not good enough")

    def score(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return snapshot.rows * 0


def test_the_profile_of_the_case_is_used() -> None:
    """Plugins enabled, disabled and weighted as its configuration says; missing plugins are listed."""
    case = a_case()
    given = {
        **case.given,
        "config": {
            "profiles": [
                {
                    "schedulerName": "mine",
                    "plugins": {
                        "filter": {"enabled": [{"name": "Picky"}]},
                        "score": {"enabled": [{"name": "Picky", "weight": 7}], "disabled": [{"name": "*"}]},
                        "multiPoint": {"disabled": [{"name": "NodeName"}]},
                    },
                    "pluginConfig": [
                        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
                    ],
                }
            ]
        },
    }
    registry = Registry([*(REGISTRY[name] for name in REGISTRY), Picky])

    made = situation(Case("s", "x", given, {}), registry, DEFAULT_PLUGINS)

    assert made.scheduler.profile.scheduler_name == "mine"
    assert [plugin.name for plugin in made.scheduler.profile.filter] == ["NodeResourcesFit", "Picky"]
    assert dict(made.scheduler.profile.weights) == {"Picky": 7}
    assert "PodTopologySpread" in made.absent


@pytest.fixture
def folder(tmp_path: Any) -> Any:
    """A recording of one case that agrees and one that does not."""
    good, bad = a_case(), a_case(hosts=["little"])
    for family, case in (("agreeing", good), ("differing", bad)):
        line = orjson.dumps({"input": {"id": family, **case.given}, "expected": case.expected})
        (tmp_path / f"{family}.jsonl.gz").write_bytes(gzip.compress(line))
    return tmp_path


def test_one_family_or_all_are_read(folder: Any) -> None:
    """All of them, or one."""
    assert [case.id for case in read_cases(folder)] == ["agreeing", "differing"]
    assert [case.family for case in read_cases(folder, "differing")] == ["differing"]
    with pytest.raises(FileNotFoundError, match=r"holds no unknown\.jsonl\.gz"):
        list(read_cases(folder, "unknown"))


def test_the_command_ends_with_the_count(folder: Any) -> None:
    """Mismatches first, the count last, and the exit status says whether all is equal."""
    result = CliRunner().invoke(replay.app, [str(folder)])

    assert result.exit_code == 1
    assert "differing host: expected ['little'], got 'big'" in result.output
    assert result.output.splitlines()[-1].endswith(" failed")


def test_the_command_takes_a_subfolder_as_a_family(folder: Any, tmp_path: Any) -> None:
    """All files of that one, and of no other."""
    dra = tmp_path / "all" / "dra"
    dra.mkdir(parents=True)
    (dra.parent / "scheduler").mkdir()
    for name, into in (("differing", dra), ("agreeing", dra.parent / "scheduler")):
        (folder / f"{name}.jsonl.gz").rename(into / f"{name}.jsonl.gz")

    result = CliRunner().invoke(replay.app, [str(dra.parent), "--family", "dra"])

    assert "differing host: expected ['little'], got 'big'" in result.output
    assert "agreeing" not in result.output


def test_the_command_says_when_there_is_nothing_to_decide(tmp_path: Any) -> None:
    """One sentence, and not the exit status of a mismatch."""
    result = CliRunner().invoke(replay.app, [str(tmp_path)])

    assert result.exit_code == 2
    assert "holds no *.jsonl.gz; name a folder of recordings" in result.output


def a_preemption(**changes: Any) -> Any:
    """A full node of two small pods, of which the less important one has to go."""

    def small(name: Any, priority: Any) -> Any:
        return {
            "metadata": {"name": name, "namespace": "a", "uid": name},
            "spec": {
                "nodeName": "little",
                "priority": priority,
                "containers": [{"resources": {"requests": {"cpu": "250m"}}}],
            },
            "status": {"startTime": "2026-01-01T00:00:00Z"},
        }

    given = {
        "nodes": [a_node("little", "500m")],
        "pods": [small("low", -1), small("high", 1)],
        "pod": {
            "metadata": {"name": "pod", "namespace": "a", "uid": "u3"},
            "spec": {"priority": 5, "containers": [{"resources": {"requests": {"cpu": "200m"}}}]},
        },
    }
    expected = {
        "result": "unschedulable",
        "filter": {
            "little": {"plugin": "NodeResourcesFit", "code": "Unschedulable", "reasons": ["Insufficient cpu"]}
        },
        "feasible": [],
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
        "unschedulablePlugins": ["NodeResourcesFit"],
        "nominating": "little",
        "preemption": {
            "eligible": True,
            "candidates": {"little": {"victims": ["a/low"]}},
            "selected": ["little"],
            **changes,
        },
    }
    case = Case("small", "x", given, expected)
    return list(replay.compare(case, situation(case, Registry(IN_TREE), DEFAULT_PLUGINS)))


@pytest.mark.parametrize(
    ("changes", "different"),
    [
        ({}, []),
        ({"eligible": False}, ["eligible"]),
        ({"candidates": {"little": {"victims": ["a/high"]}}}, ["victims"]),
        ({"candidates": {"little": {"victims": ["a/low"], "pdbViolations": 1}}}, ["victims"]),
        ({"candidates": {}}, ["candidates"]),
        ({"selected": ["other"]}, ["selected"]),
        ({"clearNominated": {"little": ["a/x"]}}, ["clearNominated"]),
        ({"statuses": {"other": {}}}, ["preemption status"]),
        ({"candidates": {"little": {"orderDependent": True}}, "orderDependent": True}, []),
    ],
)
def test_preemption_is_compared_node_by_node(changes: Any, different: Any) -> None:
    """Candidates, victims in their order, budgets, the choice and whose nomination it clears."""
    assert [each.what for each in a_preemption(**changes)] == different


FIX = LaterFix("1.38", (1,), "Counts more.", "NodeName", (), ("named",))


@pytest.mark.parametrize(
    ("plugins", "fix", "left", "is_explained"),
    [
        ([], None, [], False),
        (["NodeName"], None, ["NodeName"], False),
        (["NodeName", ""], FIX, [], True),
        (["", "NodePorts"], FIX, ["NodePorts"], False),
        ([], FIX, ["NodeName"], False),
    ],
    ids=["same", "unnamed", "named", "named-for-another-plugin", "named-and-same"],
)
def test_a_later_fix_explains_differences_of_its_plugin_in_named_cases(
    plugins: Any, fix: Any, left: Any, is_explained: Any
) -> None:
    """Consequences name no plugin; a named case has to differ."""
    found = [replay.Mismatch("named", "total", 1, 2, plugin=each) for each in plugins]

    unexplained, explained = replay.judged(found, "named", fix)

    assert ([each.plugin for each in unexplained], explained) == (left, is_explained)


def test_the_command_counts_what_a_later_fix_explains(folder: Any, monkeypatch: Any) -> None:
    """Such a case fails nothing; one that is named and does not differ does."""
    wrong = [replay.Mismatch("differing", "filter", 1, 2, plugin="NodeName")]
    monkeypatch.setattr(replay, "compare", lambda case, _given: wrong if case.id == "differing" else [])

    monkeypatch.setattr(replay, "BY_RECORDING", {f"{folder.name}/differing": FIX, "other/agreeing": FIX})
    explained = CliRunner().invoke(replay.app, [str(folder)])
    named = {f"{folder.name}/{case}": FIX for case in ("differing", "agreeing")}
    monkeypatch.setattr(replay, "BY_RECORDING", named)
    unfounded = CliRunner().invoke(replay.app, [str(folder)])

    assert explained.exit_code == 0
    assert "1 passed, 1 explained by later fixes, 0 failed" in explained.output
    assert unfounded.exit_code == 1
    assert "agreeing plugin=NodeName difference: expected 'Counts more.', got 'none'" in unfounded.output


FOLDER = RECORDINGS / "scheduler"
FAMILIES = sorted(file.name.removesuffix(".jsonl.gz") for file in FOLDER.glob("*.jsonl.gz")) or ["none"]


@needs_recordings("scheduler")
@pytest.mark.parametrize("family", FAMILIES)
def test_recorded_decisions_are_reproduced(family: Any) -> None:
    """Feasible nodes, first refusals, scores, messages and victims of kube-scheduler 1.36."""
    counts, mismatches, _ = replay.replay(FOLDER, family)

    assert [str(mismatch) for mismatch in mismatches] == []
    assert counts["passed"] > 0
