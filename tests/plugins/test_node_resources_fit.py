"""NodeResourcesFit, against upstream's own arithmetic and the conformance laws."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.framework import SUCCESS, Code, CycleState, Snapshot
from plimsoll.framework.status import Status
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.plugins.node_resources_fit import (
    FIRST_RESOURCE,
    OTHERS,
    NodeResourcesFit,
    NodeResourcesFitArgs,
)
from plimsoll.testing.builders import a_cluster, a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import FilterPluginConformance, ScorePluginConformance
from plimsoll.toolkit.scheduling.resource_points import EXACT, divided

GPU = "example.com/gpu"


def with_args(**args: Any) -> NodeResourcesFit:
    return NodeResourcesFit(NodeResourcesFitArgs.model_validate(args))


def strategy(
    kind: str, *resources: tuple[str, int], shape: list[dict[str, int]] | None = None
) -> NodeResourcesFit:
    return with_args(
        scoringStrategy={
            "type": kind,
            "resources": [{"name": name, "weight": weight} for name, weight in resources],
            **({"requestedToCapacityRatio": {"shape": shape}} if shape else {}),
        }
    )


def verdict(plugin: NodeResourcesFit, pod: PodInfo, snapshot: Snapshot) -> Status:
    state = CycleState()
    assert plugin.pre_filter(state, pod, snapshot) == SUCCESS
    code = int(plugin.filter(state, pod, snapshot)[0])
    return plugin.refusal(code, state, pod) if code else SUCCESS


@pytest.mark.parametrize(
    ("pod", "node", "code", "reasons"),
    [
        pytest.param(a_pod(cpu="4"), a_node(cpu="4"), Code.SUCCESS, (), id="just-fits"),
        pytest.param(a_pod(), a_node(cpu="0", memory="0"), Code.SUCCESS, (), id="nothing-requested"),
        pytest.param(
            a_pod(cpu="4001m"),
            a_node(cpu="4"),
            Code.UNRESOLVABLE,
            ("Insufficient cpu",),
            id="more-than-the-node",
        ),
        pytest.param(
            a_pod(cpu="5", memory="9Gi", requests={"ephemeral-storage": "1"}),
            a_node(),
            Code.UNRESOLVABLE,
            ("Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"),
            id="every-shortage-is-a-reason",
        ),
        pytest.param(
            a_pod(requests={GPU: 1}),
            a_node(),
            Code.UNRESOLVABLE,
            (f"Insufficient {GPU}",),
            id="resource-of-no-node",
        ),
        pytest.param(
            a_pod(requests={"hugepages-2Mi": "4Mi", GPU: 3}),
            a_node(allocatable={GPU: 2, "hugepages-2Mi": "2Mi"}),
            Code.UNRESOLVABLE,
            (f"Insufficient {GPU}", "Insufficient hugepages-2Mi"),
            id="scalar-resources-by-name",
        ),
        pytest.param(a_pod(), a_node(pods=0), Code.UNSCHEDULABLE, ("Too many pods",), id="no-pods-at-all"),
        pytest.param(
            a_pod(cpu="5"),
            a_node(pods=0),
            Code.UNRESOLVABLE,
            ("Too many pods", "Insufficient cpu"),
            id="both",
        ),
        pytest.param(a_pod(cpu="1E"), a_node(), Code.SUCCESS, (), id="overflowing-milli-cpu-reads-as-none"),
    ],
)
def test_refuses_what_does_not_fit(pod: Pod, node: Node, code: Code, reasons: tuple[str, ...]) -> None:
    """All that is short is named, in upstream's order; more than the whole node cannot be resolved."""
    status = verdict(with_args(), the_info(pod), a_snapshot(node))

    assert (status.code, status.reasons) == (code, reasons)


def test_what_runs_on_the_node_is_taken() -> None:
    """Removing it would help."""
    snapshot = a_snapshot(a_node("n1", cpu="4", pods=1), pods=[a_pod("other", node="n1", cpu="3")])

    status = verdict(with_args(), the_info(a_pod(cpu="2")), snapshot)

    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, ("Too many pods", "Insufficient cpu"))


@pytest.mark.parametrize(
    "args", [{"ignoredResources": [GPU]}, {"ignoredResourceGroups": ["example.com"]}], ids=["name", "group"]
)
def test_ignored_resources_are_not_looked_at(args: dict[str, Any]) -> None:
    """Somebody else looks after them; the others still count."""
    pod = the_info(a_pod(requests={GPU: 1, "example.org/fpga": 1}))

    status = verdict(with_args(**args), pod, a_snapshot(a_node()))

    assert status.reasons == ("Insufficient example.org/fpga",)


BOTH = ("cpu", 1), ("memory", 1)
SMALL, LARGE = a_node("small", cpu="4", memory=10000), a_node("large", cpu="6", memory=10000)
FALLING = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
RISING = [{"utilization": 0, "score": 0}, {"utilization": 40, "score": 8}, {"utilization": 100, "score": 10}]


@pytest.mark.parametrize(
    ("plugin", "pod", "points"),
    [
        pytest.param(
            # cpu (4000-3000)*100//4000 = 25, memory (10000-5000)*100//10000 = 50, (25+50)//2 = 37
            # cpu (6000-3000)*100//6000 = 50, memory as above = 50, (50+50)//2 = 50
            strategy("LeastAllocated", *BOTH),
            a_pod(cpu="3", memory=5000),
            [37, 50],
            id="least",
        ),
        pytest.param(
            # cpu 3000*100//4000 = 75, 3000*100//6000 = 50; memory 50: (75+50)//2 = 62, (50+50)//2 = 50
            strategy("MostAllocated", *BOTH),
            a_pod(cpu="3", memory=5000),
            [62, 50],
            id="most",
        ),
        pytest.param(
            # cpu 75% -> 25, 50% -> 50; memory 50% -> 50: round(75/2) = 38, 50
            strategy("RequestedToCapacityRatio", *BOTH, shape=FALLING),
            a_pod(cpu="3", memory=5000),
            [38, 50],
            id="falling-ratio",
        ),
        pytest.param(
            # cpu 25% -> 50, 16% -> 32 (80*16//40); memory 90% -> 80 + 20*50//60 = 96: (50+96)/2 = 73, 64
            strategy("RequestedToCapacityRatio", *BOTH, shape=RISING),
            a_pod(cpu="1", memory=9000),
            [73, 64],
            id="rising-ratio",
        ),
        pytest.param(
            # (25*3 + 50*1)//4 = 31, (50*3 + 50)//4 = 50
            strategy("LeastAllocated", ("cpu", 3), ("memory", 0)),
            a_pod(cpu="3", memory=5000),
            [31, 50],
            id="weights-and-weight-zero-is-one",
        ),
        pytest.param(
            # more than capacity: least 0, so (0+50)//2 = 25; 6000-5000 -> 16: (16+50)//2 = 33
            strategy("LeastAllocated", *BOTH),
            a_pod(cpu="5", memory=5000),
            [25, 33],
            id="overcommitted-adds-nothing",
        ),
        pytest.param(
            # 100m by default: cpu (4000-100)*100//4000 = 97, 98; memory 200 MiB > 10000: 0 -> 48, 49
            strategy("LeastAllocated", *BOTH),
            a_pod(),
            [48, 49],
            id="defaults-for-what-is-not-named",
        ),
        pytest.param(
            # the pod requests no gpu, so only cpu counts: 25, 50
            strategy("LeastAllocated", ("cpu", 1), (GPU, 5)),
            a_pod(cpu="3"),
            [25, 50],
            id="scalar-resources-count-when-requested",
        ),
        pytest.param(
            strategy("LeastAllocated", ("pods", 1)), a_pod(cpu="1"), [0, 0], id="nothing-to-score-by"
        ),
    ],
)
def test_scores_match_worked_examples(plugin: NodeResourcesFit, pod: Pod, points: list[int]) -> None:
    """Each case states its arithmetic; the sums are upstream's, not ours."""
    scores = plugin.score(CycleState(), the_info(pod), a_snapshot(SMALL, LARGE))

    assert scores.tolist() == points


def test_running_pods_count_with_defaults_for_cpu_and_memory_only() -> None:
    """Cpu 4000: 100 by default + 3000 -> 22; ephemeral storage: what is requested, 1 + 1 of 4 -> 50."""
    node = a_node("n1", cpu="4", allocatable={"ephemeral-storage": 4})
    snapshot = a_snapshot(node, pods=[a_pod("other", node="n1", requests={"ephemeral-storage": 1})])
    pod = the_info(a_pod(cpu="3", requests={"ephemeral-storage": 1}))

    assert strategy("LeastAllocated", ("cpu", 1)).score(CycleState(), pod, snapshot).tolist() == [22]
    assert strategy("LeastAllocated", ("ephemeral-storage", 1)).score(
        CycleState(), pod, snapshot
    ).tolist() == [50]


def test_absurd_amounts_score_as_they_do_upstream() -> None:
    """Products beyond 64 bits wrap around there, and the quotient is truncated towards zero.

    memory (2**50*100 - 2**53)*100 wraps to a negative number, // 2**50*100 = -71; cpu 95; (95-71)//2 = 12.
    """
    node = a_node("n1", cpu="10k", memory="100Pi")
    pod = a_pod(cpu="500", memory="9007199254740992")

    scores = with_args().score(CycleState(), the_info(pod), a_snapshot(node))

    assert scores.tolist() == [12]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({"ignoredResources": ["cpu"]}, "cpu is no extended resource"),
        ({"ignoredResourceGroups": ["a/b"]}, "write the part before the slash only"),
        ({"ignoredResourceGroups": ["my group"]}, '"my group" is no group'),
        ({"ignoredResourceGroups": [""]}, '"" is no group'),
        ({"scoringStrategy": {"type": "RequestedToCapacityRatio"}}, "which requires it"),
        (
            {"scoringStrategy": {"type": "LeastAllocated", "requestedToCapacityRatio": {"shape": RISING}}},
            "belongs to the type of that name",
        ),
        (
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {"shape": RISING[::-1]},
                }
            },
            "utilization must rise",
        ),
        ({"scoringStrategy": {"resources": [{"name": "cpu", "weight": 101}]}}, "less than or equal to 100"),
        ({"scoringStrategie": {}}, "Extra inputs are not permitted"),
    ],
)
def test_bad_arguments_are_refused(args: dict[str, Any], sentence: str) -> None:
    """The sentence says what is allowed."""
    with pytest.raises(ValidationError, match=sentence):
        NodeResourcesFitArgs.model_validate(args)


def test_an_empty_list_of_resources_means_the_default() -> None:
    """As upstream defaults it: cpu and memory."""
    args = NodeResourcesFitArgs.model_validate(
        {"scoringStrategy": {"type": "MostAllocated", "resources": []}}
    )

    assert [each.name for each in args.scoring_strategy.resources] == ["cpu", "memory"]


class TestFilterConformance(FilterPluginConformance):
    """The laws every filter plugin obeys."""

    plugin = with_args()


class TestLeastAllocatedConformance(ScorePluginConformance):
    """The laws every score plugin obeys, for the first strategy."""

    plugin = with_args()


class TestMostAllocatedConformance(ScorePluginConformance):
    """The laws every score plugin obeys, for the second strategy."""

    plugin = strategy("MostAllocated", *BOTH, (GPU, 3))


class TestRequestedToCapacityRatioConformance(ScorePluginConformance):
    """The laws every score plugin obeys, for the third strategy."""

    plugin = strategy("RequestedToCapacityRatio", *BOTH, (GPU, 3), shape=RISING)


@given(
    numerators=st.lists(
        st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, EXACT + 2)), min_size=1, max_size=4
    ),
    divisor=st.one_of(st.integers(1, 2**63 - 1), st.integers(1, 2**20)),
    near=st.booleans(),
)
def test_quotients_are_exact_and_truncated_whatever_the_size(
    numerators: list[int], divisor: int, near: bool
) -> None:
    """Also where a double would round up: just below a multiple of the divisor."""
    if near:
        numerators = [max(number // divisor * divisor - 1, 0) for number in numerators]
    truncated = [abs(number) // divisor * (1 if number >= 0 else -1) for number in numerators]

    assert divided(np.array(numerators), np.full(len(numerators), divisor)).tolist() == truncated


@given(
    nodes=st.lists(
        st.tuples(st.integers(1, 2**47), st.integers(1, 2**20), st.integers(0, 2**47)), min_size=1, max_size=3
    ),
    steps=st.integers(0, 100),
    off=st.integers(-1, 1),
    weights=st.tuples(st.integers(1, 100), st.integers(1, 100)),
)
def test_points_are_those_of_integers_wherever_doubles_are_used(
    nodes: list[tuple[int, ...]], steps: int, off: int, weights: tuple[int, ...]
) -> None:
    """Also next to where a percent ends, and with more memory than doubles can be trusted with."""
    memory = nodes[0][0]
    wanted = max(1, memory - (memory * steps + 99) // 100 + off)
    pod = the_info(a_pod(cpu="1m", memory=str(wanted)))
    snapshot = Snapshot(
        a_cluster(
            [a_node(f"n{at}", cpu=f"{cpu}m", memory=str(size)) for at, (size, cpu, _) in enumerate(nodes)],
            [a_pod(f"p{at}", node=f"n{at}", cpu="1m", memory=str(each[2])) for at, each in enumerate(nodes)],
        )
    )

    points = strategy("LeastAllocated", *zip(("cpu", "memory"), weights, strict=True)).score(
        CycleState(), pod, snapshot
    )

    def share(used: int, size: int) -> int:
        return max(size - used, 0) * 100 // size

    taken = snapshot.nonzero_requested.tolist()
    shares = [
        (share(taken[at][0] + 1, cpu), share(taken[at][1] + wanted, size))
        for at, (size, cpu, _) in enumerate(nodes)
    ]
    assert points.tolist() == [
        (of_cpu * weights[0] + of_memory * weights[1]) // sum(weights) for of_cpu, of_memory in shares
    ]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(1, "Insufficient example.com/r{last}", id="one"),
        pytest.param(2, "Insufficient one of 2 further resources", id="two"),
        pytest.param(5, "Insufficient one of 5 further resources", id="five"),
    ],
)
def test_resources_beyond_those_with_a_bit_are_named_or_counted(more: int, expected: str) -> None:
    """A pod of sixty resources, none of which the node has."""
    named = OTHERS - FIRST_RESOURCE
    requests = {f"example.com/r{number:02}": "1" for number in range(named + more)}
    status = verdict(with_args(), the_info(a_pod(requests=requests)), a_snapshot(a_node()))

    assert len(status.reasons) == named + 1
    assert status.reasons[-1] == expected.format(last=f"{named:02}")
