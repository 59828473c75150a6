"""Effective requests: sidecars, init containers, pod level, overhead, resize in place, defaults."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model import upstream_quantity
from plimsoll.model.kinds.pod import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from plimsoll.model.kinds.requests import (
    LARGEST_AMOUNT,
    bounded,
    existing,
    fit_score,
    incoming,
    is_extended,
    is_scalar,
    nonzero_existing,
    unreadable,
)
from plimsoll.model.selectors import is_label_key

MIB = 1024 * 1024

#: Amounts about and beyond 64 bits, in both of upstream's forms; below the thousand digits that are exact.
wide = st.builds(
    "{}{}{}".format,
    st.sampled_from(["0", "1", "7", "8", "9", "16", "9" * 17, "9" * 18, str(2**63), str(2**64 + 5)]),
    st.sampled_from(["", "", ".5", ".123456789123"]),
    st.sampled_from(["", "m", "P", "E", "Ti", "Pi", "Ei", "e15", "e16", "e18", "e19", "e40", "e960"]),
)


def container(name: str = "c", *, sidecar: Any = False, **requests: Any) -> Container:
    return Container(
        name=name,
        restart_policy="Always" if sidecar else "",
        resources=ResourceRequirements(requests=requests),
    )


def a_pod(
    *containers: Container,
    init: list[Container] | tuple[Any, ...] = (),
    pod_level: dict[str, Any] | None = None,
    overhead: dict[str, Any] | None = None,
    status: PodStatus | None = None,
) -> Pod:
    return Pod(
        spec=PodSpec(
            containers=containers,
            init_containers=tuple(init),
            resources=None if pod_level is None else ResourceRequirements(requests=pod_level),
            overhead=overhead or {},
        ),
        status=status or PodStatus(),
    )


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            # containers 2+1 cpu, 1+1 G; the largest init container 2 cpu, 3 G
            a_pod(
                container(cpu="2", memory="1G"),
                container(cpu="1", memory="1G"),
                init=[container(cpu="2", memory="1G"), container(cpu="2", memory="3G")],
            ),
            {"cpu": 3000, "memory": 3 * 10**9},
            id="init-container-peak-per-resource",
        ),
        pytest.param(
            # max(1+1, 1, 1+3) = 4
            a_pod(container(cpu="1"), init=[container(cpu="1", sidecar=True), container(cpu="3")]),
            {"cpu": 4000},
            id="sidecar-before-init",
        ),
        pytest.param(
            # max(1+1, 3, 1) = 3
            a_pod(container(cpu="1"), init=[container(cpu="3"), container(cpu="1", sidecar=True)]),
            {"cpu": 3000},
            id="sidecar-after-init",
        ),
        pytest.param(
            # 500m replaces 1 cpu, memory stays, 100m on top
            a_pod(container(cpu="1", memory="1Gi"), pod_level={"cpu": "500m"}, overhead={"cpu": "100m"}),
            {"cpu": 600, "memory": 1024 * MIB},
            id="pod-level-and-overhead",
        ),
        pytest.param(
            # 600u + 600u = 1200u, rounded up once: 2m
            a_pod(container(cpu="600u"), container(cpu="600u")),
            {"cpu": 2},
            id="rounded-once-after-the-sum",
        ),
        pytest.param(
            a_pod(container(**{"nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi", "storage": "1Gi"})),
            {"nvidia.com/gpu": 1, "hugepages-2Mi": 4 * MIB},
            id="unknown-names-are-dropped",
        ),
        pytest.param(a_pod(container()), {}, id="nothing"),
    ],
)
def test_incoming_requests_match_worked_examples(pod: Pod, expected: dict[str, int]) -> None:
    """Each case states its arithmetic."""
    assert incoming(pod) == expected


def resized(wanted: str, granted: str, allocated: str, *, infeasible: bool = False) -> Pod:
    conditions = (
        (PodCondition(type="PodResizePending", status="True", reason="Infeasible"),) if infeasible else ()
    )
    return a_pod(
        container(cpu=wanted),
        status=PodStatus(
            conditions=conditions,
            container_statuses=(
                ContainerStatus(
                    name="c",
                    resources=ResourceRequirements(requests={"cpu": granted}),
                    allocated_resources={"cpu": allocated},
                ),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("pod", "cpu_milli"),
    [
        pytest.param(resized("1", "2", "3"), 3000, id="shrinking-keeps-what-is-held"),
        pytest.param(resized("4", "2", "3"), 4000, id="growing-counts-what-is-wanted"),
        pytest.param(resized("4", "2", "3", infeasible=True), 3000, id="an-infeasible-wish-does-not-count"),
    ],
)
def test_existing_requests_follow_a_resize(pod: Pod, cpu_milli: int) -> None:
    """On a node the larger of wanted and granted counts; for placing, the spec alone does."""
    assert existing(pod) == {"cpu": cpu_milli}


def test_scoring_counts_a_default_for_each_container_that_names_none() -> None:
    """100 milli and 200 MiB a container; an explicit zero stays zero."""
    pod = a_pod(container(cpu="0"), container(memory="1Mi"))

    assert nonzero_existing(pod) == {"cpu": 100, "memory": 201 * MIB}
    assert fit_score(pod) == {"cpu": 100, "memory": 201 * MIB}
    assert incoming(pod) == {"cpu": 0, "memory": MIB}


def test_pod_level_requests_silence_the_defaults_they_cover() -> None:
    """A node's non-zero sum honours the pod level; the incoming pod's score ignores it."""
    pod = a_pod(container(), container(), pod_level={"cpu": "50m"})

    assert nonzero_existing(pod) == {"cpu": 50, "memory": 400 * MIB}
    assert fit_score(pod) == {"cpu": 200, "memory": 400 * MIB}


def test_a_resize_of_the_pod_level_concerns_what_the_spec_names_there() -> None:
    """Memory that only the status mentions stays the containers'; an infeasible wish without a grant is 0."""
    granted = ResourceRequirements(requests={"memory": "1Mi", "cpu": "2"})
    pod = a_pod(container(memory="8Mi"), pod_level={"cpu": "1"}, status=PodStatus(resources=granted))
    assert existing(pod) == {"memory": 8 * MIB, "cpu": 2000}

    refused = PodStatus(
        resources=ResourceRequirements(),
        conditions=(PodCondition(type="PodResizePending", status="True", reason="Infeasible"),),
    )
    assert existing(a_pod(container(cpu="1"), pod_level={"cpu": "1"}, status=refused)) == {"cpu": 0}


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.booleans()), max_size=5),
    st.lists(st.integers(0, 5000), min_size=1),
)
def test_sidecars_never_lower_the_total(inits: list[tuple[int, bool]], regulars: list[int]) -> None:
    """The total covers the running containers with all sidecars, and each init container alone."""
    pod = a_pod(
        *(container(cpu=f"{cpu}m") for cpu in regulars),
        init=[container(cpu=f"{cpu}m", sidecar=sidecar) for cpu, sidecar in inits],
    )

    total = incoming(pod)["cpu"]

    assert total >= sum(regulars) + sum(cpu for cpu, sidecar in inits if sidecar)
    assert all(total >= cpu for cpu, _ in inits)


def test_an_amount_that_is_no_quantity_takes_no_other_along() -> None:
    """It counts as 0, and is named."""
    pod = a_pod(container(cpu="lots", memory="1Mi"), container(cpu="1"))

    assert incoming(pod) == {"cpu": 1000, "memory": MIB}
    assert [sentence.split(":")[0] for sentence in unreadable(pod)] == ["cpu of container c counts as 0"]


@given(st.lists(wide, min_size=1, max_size=3), st.lists(st.tuples(wide, st.booleans()), max_size=2), wide)
@example(["0Pi"], [], "0.5E")
@example(["8E", "7E"], [], "1E")
def test_what_does_not_fit_64_bits_is_upstreams(
    regulars: list[str], inits: list[tuple[str, bool]], overhead: str
) -> None:
    """Sums of the largest and of the oddest amounts, in both units."""
    pod = a_pod(
        *(container(cpu=amount, memory=amount) for amount in regulars),
        init=[container(cpu=amount, memory=amount, sidecar=sidecar) for amount, sidecar in inits],
        overhead={"cpu": overhead, "memory": overhead},
    )

    taken = incoming(pod)

    expected = upstream_quantity.requests(msgspec.to_builtins(pod))
    assert taken == {name: max(amount, 0) for name, amount in expected.items()}


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("kubernetes.io/batch", False, True),
        ("requests.nvidia.com/gpu", False, False),
        ("hugepages-1Gi", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("pods", False, False),
        ("cpu", False, False),
    ],
)
def test_scalar_resources_are_known_by_their_names(name: str, extended: bool, scalar: bool) -> None:
    """Extended ones have a domain outside kubernetes.io; huge pages and attachable volumes count too."""
    assert (is_extended(name), is_scalar(name)) == (extended, scalar)


@example("a" * 244 + "/" + "c" * 63)
@example("a" * 244 + "/" + "c" * 64)
@example("a" * 245 + "/" + "c" * 63)
@given(
    st.one_of(
        st.text(alphabet="aZ1-._/\n", max_size=10),
        st.builds("{}/{}".format, st.text("ab.", min_size=235, max_size=250), st.text("c-", max_size=66)),
    )
)
def test_an_extended_resource_is_one_whose_quota_has_a_qualified_name(name: str) -> None:
    """As upstream says it: ``requests.`` before the name makes the key of a label."""
    is_divided = name.count("/") == 1 and not name.startswith(("/", "requests."))

    assert is_extended(name) == (is_divided and is_label_key(f"requests.{name}"))


@given(st.lists(wide, min_size=1, max_size=3), st.sampled_from(["1", "250m", "3Gi"]))
@example(["8Ei", "8Ei"], "1")
@example(["8E", "9E"], "250m")
def test_what_one_resource_overflows_changes_no_other(amounts: list[str], small: str) -> None:
    """And each is read as in a pod that requests nothing else."""
    both = incoming(a_pod(*(container(cpu=small, memory=amount) for amount in amounts)))

    assert both["memory"] == incoming(a_pod(*(container(memory=amount) for amount in amounts)))["memory"]
    assert both["cpu"] == incoming(a_pod(*(container(cpu=small) for _ in amounts)))["cpu"]


@pytest.mark.parametrize("one", [-1, 0, 5, LARGEST_AMOUNT, LARGEST_AMOUNT + 1])
@pytest.mark.parametrize("other", [-1, 0, LARGEST_AMOUNT + 1])
def test_each_amount_is_bounded_by_itself(one: int, other: int) -> None:
    """Whatever the others are."""
    expected = [sorted((0, each, LARGEST_AMOUNT))[1] for each in (one, other)]

    assert [*bounded({"cpu": one, "memory": other}).values()] == expected
