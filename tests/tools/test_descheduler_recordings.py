"""Recorded cycles of descheduler are run again, and every difference is named."""

import copy
import gzip
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from not_compared import RECORDINGS, needs_recordings
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.planning.upstream.cycle import UpstreamOutcome
from recordings import descheduler as deciding
from recordings import descheduler_replay
from recordings import replay as replaying
from recordings.descheduler import decide
from recordings.policies import policy_of

FOLDER = RECORDINGS / "descheduler"


def a_node(name: Any, taints: Any = ()) -> Any:
    return {
        "metadata": {"name": name},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": 10}},
    }


def a_pod(name: Any) -> Any:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "o1"}
    return {
        "metadata": {"name": name, "namespace": "a", "uid": f"u-{name}", "ownerReferences": [owner]},
        "spec": {"nodeName": "bad", "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }


def an_eviction(name: Any) -> Any:
    return {
        "namespace": "a",
        "name": name,
        "node": "bad",
        "profile": "p",
        "plugin": "RemovePodsViolatingNodeTaints",
    }


def a_profile(*enabled: Any, **args: Any) -> Any:
    """One that runs NodeTaints with these arguments."""
    return {
        "name": "p",
        "pluginConfig": [{"name": "RemovePodsViolatingNodeTaints", "args": args}],
        "plugins": {"deschedule": {"enabled": ["RemovePodsViolatingNodeTaints", *enabled]}},
    }


def above(name: Any) -> Any:
    """The profile that protects pods from the value of this PriorityClass up."""
    profile = a_profile()
    threshold = {"name": "DefaultEvictor", "args": {"priorityThreshold": {"name": name}}}
    return {**profile, "pluginConfig": [*profile["pluginConfig"], threshold]}


def a_case(policy: Any = None, **expected: Any) -> Any:
    """Two pods on a tainted node, and a policy that moves one of them."""
    return {
        "id": "small-0",
        "now": "2026-01-01T00:00:00Z",
        "nodes": [a_node("bad", [{"key": "t", "effect": "NoSchedule"}]), a_node("good")],
        "pods": [a_pod("x"), a_pod("y")],
        "policy": {
            "apiVersion": "descheduler/v1alpha2",
            "kind": "DeschedulerPolicy",
            "maxNoOfPodsToEvictTotal": 1,
            "profiles": [
                {
                    "name": "p",
                    "pluginConfig": [{"name": "RemovePodsViolatingNodeTaints"}],
                    "plugins": {"deschedule": {"enabled": ["RemovePodsViolatingNodeTaints"]}},
                }
            ],
            **(policy or {}),
        },
        "expected": {"error": None, "stable": True, "order": "total", "evictions": [an_eviction("x")]}
        | expected,
    }


ERROR = {"stage": "policy", "message": "no good", "messageStable": True}
EITHER = {
    "total": [1, 1],
    "byPlugin": {"p/RemovePodsViolatingNodeTaints": [1, 1]},
    "byNode": {"bad": [1, 1]},
    "byNamespace": {"a": [1, 1]},
    "byOwnerNode": {"a|ReplicaSet|web|bad": [1, 1]},
    "must": [],
    "may": ["a/x", "a/y"],
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(a_case(), id="as-recorded"),
        pytest.param(a_case(stable=False, invariants=EITHER), id="one-of-two"),
        pytest.param(a_case({"maxNoOfPodsToEvictTotal": -1}, error=ERROR, evictions=[]), id="refused"),
        pytest.param(
            a_case(error={"stage": "panic", "message": "", "messageStable": True}), id="upstream-crashed"
        ),
        pytest.param(
            a_case({"apiVersion": "", "profiles": 7, "nodeSelector": []}, evictions=[]), id="no-version"
        ),
        pytest.param(
            a_case({"apiVersion": "", "kind": "Policy"}, error=ERROR), id="no-version-and-wrong-kind"
        ),
        pytest.param(
            a_case({"APIVersion": "descheduler/v1alpha2", "apiVersion": None}), id="version-in-another-case"
        ),
        pytest.param(a_case({"nodeSelector": None, "profiles": [a_profile(), None]}), id="nulls"),
        pytest.param(a_case({"profiles": [a_profile(None)]}, error=ERROR), id="null-plugin"),
        pytest.param(a_case({"profiles": [a_profile(namespaces=None)]}), id="null-argument"),
        pytest.param(a_case({"profiles": [a_profile(spaces=None)]}, error=ERROR), id="unknown-null"),
        pytest.param(
            a_case({"profiles": [a_profile(namespaces={"include": [None]})]}, evictions=[]), id="null-item"
        ),
        pytest.param(a_case({"profiles": [a_profile(kind="Args")]}), id="kind-of-arguments"),
        pytest.param(a_case({"profiles": [a_profile(kind={})]}, error=ERROR), id="kind-that-is-none"),
        pytest.param(a_case({"profiles": [above("missing")]}, error=ERROR), id="class-that-is-none"),
    ],
)
def test_what_agrees_has_no_differences(case: Any) -> None:
    """The decided case equals the recorded one, or one of its possible outcomes."""
    assert list(descheduler_replay.differences(case)) == []


@pytest.mark.parametrize(
    ("case", "difference"),
    [
        pytest.param(
            a_case(evictions=[an_eviction("y")]),
            "not evicted: p/RemovePodsViolatingNodeTaints/bad/a/y",
            id="another-pod",
        ),
        pytest.param(a_case(error=ERROR), "policy error: expected 'no good', got ''", id="not-refused"),
        pytest.param(
            a_case(stable=False, invariants=EITHER | {"must": ["a/y"]}),
            "must be evicted: a/y",
            id="one-that-must",
        ),
        pytest.param(
            a_case(stable=False, invariants=EITHER | {"may": ["a/y"]}),
            "may not be evicted: a/x",
            id="one-that-may-not",
        ),
        pytest.param(
            a_case(stable=False, invariants=EITHER | {"total": [2, 3]}),
            "total: expected 2 to 3, got 1",
            id="too-few",
        ),
        pytest.param(
            a_case(
                classification=[{"plugin": "LowNodeUtilization", "underutilized": [], "overutilized": []}]
            ),
            "classification: expected [('LowNodeUtilization', [], [])], got []",
            id="not-classified",
        ),
        pytest.param(
            a_case(pluginErrors=[{"profile": "p", "extensionPoint": "balance"}]),
            "plugin errors: expected [('p', 'balance')], got []",
            id="no-error",
        ),
    ],
)
def test_differences_are_named(case: Any, difference: Any) -> None:
    """One sentence each, with what was expected and what came out."""
    assert difference in list(descheduler_replay.differences(case))


THRESHOLDS = {"thresholds": {"cpu": None}, "targetThresholds": {"cpu": 50}}


@pytest.mark.parametrize(
    ("usage", "under"),
    [({"cpu": "0", "memory": "1Gi"}, ["good"]), ({"memory": "1Gi"}, ["good"]), ({"cpu": "1m"}, [])],
)
def test_what_the_metrics_server_leaves_out_is_not_used(usage: Any, under: Any) -> None:
    """A node without a figure for cpu uses none; a threshold that is null is one of 0 %."""
    profile = {
        "name": "p",
        "pluginConfig": [
            {
                "name": "LowNodeUtilization",
                "args": THRESHOLDS | {"metricsUtilization": {"source": "KubernetesMetrics"}},
            }
        ],
        "plugins": {"balance": {"enabled": ["LowNodeUtilization"]}},
    }
    found = {"plugin": "LowNodeUtilization", "underutilized": under, "overutilized": ["bad"]}
    case = a_case(
        {"metricsProviders": [{"source": "KubernetesMetrics"}], "profiles": [profile]},
        evictions=[],
        classification=[found],
    )
    case["nodeMetrics"] = [
        {"metadata": {"name": "bad"}, "usage": {"cpu": "3", "memory": "1Gi"}},
        {"metadata": {"name": "good"}, "usage": usage},
    ]

    assert list(descheduler_replay.differences(case)) == []


def test_order_matters_where_it_is_recorded() -> None:
    """The same evictions in another order differ when the order was the same in all runs."""
    case = a_case(
        {"maxNoOfPodsToEvictTotal": None}, evictions=[an_eviction("y"), an_eviction("x")], order="total"
    )

    assert [each[:6] for each in descheduler_replay.differences(case)] == ["order:"]
    assert [each[:19] for each in descheduler_replay.differences(_with(case, order="perNode"))] == [
        "order within a node"
    ]
    assert list(descheduler_replay.differences(_with(case, order="none"))) == []


def _with(case: Any, **expected: Any) -> Any:
    changed = copy.deepcopy(case)
    changed["expected"] |= expected
    return changed


def test_the_command_counts(tmp_path: Any) -> None:
    """Both kinds of recordings are found below one folder; a difference fails the command."""
    folder = tmp_path / "descheduler"
    folder.mkdir()
    lines = [orjson.dumps(each) for each in (a_case(), a_case(evictions=[]))]
    (folder / "small.jsonl.gz").write_bytes(gzip.compress(b"\n".join(lines)))

    result = CliRunner().invoke(replaying.app, [str(tmp_path)])

    assert result.exit_code == 1
    assert "small-0 evicted: p/RemovePodsViolatingNodeTaints/bad/a/x" in result.output
    assert "descheduler/small: 1 failed" in result.output
    assert result.output.endswith("1 passed, 1 failed\n")


@needs_recordings("descheduler")
@pytest.mark.parametrize("family", ["mixed", "limits", "invalidpolicies"])
def test_the_recordings_agree(family: Any) -> None:
    """Decisions of a real descheduler, exactly; ``make vectors`` runs all families, and all cases of each."""
    cases = [case for case in _recorded(family) if not _is_live(case)][::6]

    assert cases
    assert [(case["id"], each) for case in cases for each in descheduler_replay.differences(case)] == []


def _recorded(family: Any = "*") -> Iterator[Any]:
    for file in sorted(FOLDER.glob(f"{family}.jsonl.gz")):
        yield from map(orjson.loads, gzip.decompress(file.read_bytes()).splitlines())


def _is_live(case: Any) -> Any:
    """Whether the run evicts: pods stay terminating, or evictions are refused."""
    return case.get("evictionMode") == "terminate" or case.get("evictionErrors")


@needs_recordings("descheduler")
def test_runs_that_evict_decide_as_recorded() -> None:
    """By converted policies through the whole operator, too; a dry run would differ.

    Every sixth of them: ``make vectors`` runs all.
    """
    counted: Any = Counter()
    mismatches = []
    for case in list(filter(_is_live, _recorded()))[::6]:
        decided = decide(case)
        mismatches += [f"{case['id']} {each}" for each in descheduler_replay.compared(case, decided)]
        counted["all"] += 1
        counted["policies"] += decided.by_policy is not None
        dry_run = replace(decided, outcome=decided.rehearsed, by_policy=None)  # type: ignore[arg-type] # a fake has only what is used
        counted["dry run differs"] += bool(list(descheduler_replay.compared(case, dry_run)))

    assert mismatches == []
    assert counted == {"all": 22, "policies": 22, "dry run differs": 3}


def test_a_policy_that_evicts_otherwise_is_a_difference() -> None:
    """So is a dry run that plans otherwise."""
    case = a_case()
    decided = decide(case)

    assert decided.by_policy == [("RemovePodsViolatingNodeTaints", "bad", "a", "x")]
    assert list(descheduler_replay.compared(case, decided)) == []
    (by_policy,) = descheduler_replay.compared(case, replace(decided, by_policy=[]))
    (rehearsed,) = descheduler_replay.compared(case, replace(decided, rehearsed=UpstreamOutcome()))
    assert by_policy.startswith("the converted policy's run differs")
    assert rehearsed.startswith("the dry run differs")


def test_a_run_with_more_evictions_than_records_are_kept(monkeypatch: Any) -> None:
    """The oldest records are deleted before it ends; its evictions are compared all the same."""

    def keeping_one(document: Any) -> Any:
        made = policy_of(document)
        assert made is not None
        return SchedulingPolicy.model_validate(
            {**made.model_dump(by_alias=True), "spec": {**made.spec.model_dump(by_alias=True), **few(made)}}
        )

    def few(made: Any) -> Any:
        return {
            "rebalancing": {**made.spec.rebalancing.model_dump(by_alias=True), "records": {"maxCount": 1}}
        }

    monkeypatch.setattr(deciding, "policy_of", keeping_one)
    case = a_case({"maxNoOfPodsToEvictTotal": None})
    case["pods"] = [a_pod(name) for name in "wxyz"]

    decided = decide(case)

    assert [name for *_, name in decided.by_policy or ()] == ["w", "x", "y", "z"]


@pytest.mark.parametrize(("age", "evicted"), [("-1h", ["x", "y"]), ("-2s", ["x"]), ("0s", ["x"])])
def test_a_pod_that_starts_in_the_future(age: Any, evicted: Any) -> None:
    """Only a negative minPodAge lets it go, by the converted policy too."""
    protecting = {"name": "DefaultEvictor", "args": {"minPodAge": age}}
    profile = a_profile()
    profile["pluginConfig"] += [protecting]
    case = a_case({"maxNoOfPodsToEvictTotal": None, "profiles": [profile]})
    case["pods"][0]["status"]["startTime"] = "2025-12-01T00:00:00Z"
    case["pods"][1]["status"]["startTime"] = "2026-01-01T00:00:05Z"
    case["expected"]["evictions"] = [an_eviction(name) for name in evicted]

    assert list(descheduler_replay.differences(case)) == []


@pytest.mark.parametrize(("code", "evicted"), [(429, "y"), (404, "y"), (500, "y"), (None, "x")])
@pytest.mark.parametrize("mode", ["delete", "terminate"])
def test_a_refused_eviction_uses_no_limit(code: Any, evicted: Any, mode: Any) -> None:
    """Whatever the code: the second pod goes in the first one's stead."""
    case = a_case(evictions=[an_eviction(evicted)]) | {"evictionMode": mode}
    case["evictionErrors"] = {"a/x": code} if code else {}

    assert list(descheduler_replay.differences(case)) == []
