"""The sizes of a Deployment's ReplicaSets: upstream's examples and laws."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.controllers.workloads import rolling_update


def a_deployment(
    replicas: Any, surge: Any = "25%", unavailable: Any = "25%", kind: str = "RollingUpdate"
) -> Any:
    strategy: dict[str, Any] = {"type": kind}
    if kind == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"spec": {"replicas": replicas, "strategy": strategy}}


def a_set(name: Any, replicas: Any, available: Any = None, created: str = "2026-01-01T00:00:00Z") -> Any:
    return {
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"replicas": replicas},
        "status": {"availableReplicas": replicas if available is None else available},
    }


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        pytest.param(10, "25%", "25%", (3, 2), id="surge-rounds-up-unavailable-down"),
        pytest.param(1, "25%", "25%", (1, 0), id="one-pod-surges"),
        pytest.param(4, 0, 0, (0, 1), id="never-both-zero"),
        pytest.param(3, 0, "1%", (0, 1), id="a-percentage-that-rounds-to-nothing"),
        pytest.param(5, 2, 0, (2, 0), id="numbers"),
    ],
)
def test_fence_posts(replicas: Any, surge: Any, unavailable: Any, expected: Any) -> None:
    """Percentages are of the Deployment's size; one of the two always lets the rollout move."""
    assert rolling_update.fence_posts(a_deployment(replicas, surge, unavailable)) == expected


@pytest.mark.parametrize(
    ("replicas", "surge", "new", "old", "expected"),
    [
        pytest.param(10, 0, 0, 10, 0, id="no-room"),
        pytest.param(10, 2, 0, 10, 2, id="as-far-as-the-surge"),
        pytest.param(10, 2, 0, 5, 7, id="room-left-by-the-old"),
        pytest.param(10, 2, 0, 0, 10, id="never-more-than-the-size"),
        pytest.param(5, 0, 8, 0, 5, id="shrinks-to-the-size"),
    ],
)
def test_new_size(replicas: Any, surge: Any, new: Any, old: Any, expected: Any) -> None:
    """The newest set grows into the room between the Deployment's size with surge and what there is."""
    newest = a_set("new", new)

    assert (
        rolling_update.new_size(a_deployment(replicas, surge), newest, [newest, a_set("old", old)])
        == expected
    )


@pytest.mark.parametrize(
    ("unavailable", "new", "old", "expected"),
    [
        # least = 10 - 0 = 10; may go = 10 + 1 - 10 - (1 - 0) = 0
        pytest.param(0, (1, 0), (10, 10), {}, id="the-new-pod-is-not-available"),
        # least = 10; may go = 10 + 1 - 10 - 0 = 1; none is sick; spare = 1 + 10 - 10 = 1
        pytest.param(0, (1, 1), (10, 10), {"old": 9}, id="one-new-pod-is-available"),
        # least = 8; may go = 10 + 2 - 8 - 2 = 2; 4 are sick, 2 of them go; spare = 0 + 6 - 8 < 0
        pytest.param(2, (2, 0), (10, 6), {"old": 8}, id="those-that-are-sick-go-first"),
        # least = 8; may go = 10 + 0 - 8 - 0 = 2; spare = 10 - 8 = 2
        pytest.param(2, (0, 0), (10, 10), {"old": 8}, id="as-many-as-may-be-unavailable"),
    ],
)
def test_old_sizes(unavailable: Any, new: Any, old: Any, expected: Any) -> None:
    """Old sets shrink no further than availability allows; pods that are not available go first."""
    deployment = a_deployment(10, 2, unavailable)

    assert rolling_update.old_sizes(deployment, a_set("new", *new), [a_set("old", *old)]) == expected


@pytest.mark.parametrize(
    ("replicas", "sizes", "expected"),
    [
        # 10 pods of 10 now 12: shares round(5 * 12 / 10) = 6 each
        pytest.param(12, (5, 5), {"a": 6, "b": 6}, id="grows-alike"),
        # 10 to 5: round(5 * 5 / 10) = 3 (half rounds up) for one, the rest for the other
        pytest.param(5, (8, 2), {"a": 4, "b": 1}, id="shrinks-alike"),
        pytest.param(0, (8, 2), {"a": 0, "b": 0}, id="down-to-nothing"),
    ],
)
def test_proportional_sizes(replicas: Any, sizes: Any, expected: Any) -> None:
    """A change of size in the midst of a rollout is shared out by size."""
    sets = [
        a_set("a", sizes[0], created="2026-01-01T00:00:00Z"),
        a_set("b", sizes[1], created="2026-01-02T00:00:00Z"),
    ]

    assert (
        rolling_update.proportional_sizes(a_deployment(replicas, 0, 1), sets, {"a": 10, "b": 10}) == expected
    )


sizes = st.integers(0, 30)
limits = st.one_of(st.integers(0, 10), st.integers(0, 100).map(lambda share: f"{share}%"))


@given(replicas=sizes, surge=limits, unavailable=limits, new=sizes, old=st.lists(sizes, max_size=4))
def test_a_rollout_never_exceeds_its_surge(
    replicas: Any, surge: Any, unavailable: Any, new: Any, old: Any
) -> None:
    """Growing the newest set never brings the sum over size and surge, unless it was over before."""
    deployment = a_deployment(replicas, surge, unavailable)
    sets = [a_set("new", new), *(a_set(f"old-{index}", one) for index, one in enumerate(old))]

    grown = rolling_update.new_size(deployment, sets[0], sets)

    total = new + sum(old)
    assert total - new + grown <= max(total, replicas + rolling_update.max_surge(deployment))
    assert grown >= min(new, replicas)


@given(
    replicas=sizes,
    surge=limits,
    unavailable=limits,
    new=st.tuples(sizes, sizes),
    old=st.lists(st.tuples(sizes, sizes), min_size=1, max_size=4),
)
def test_a_rollout_keeps_what_must_be_available(
    replicas: Any, surge: Any, unavailable: Any, new: Any, old: Any
) -> None:
    """Shrinking old sets never takes available pods below what must stay, unless they were below before."""
    deployment = a_deployment(replicas, surge, unavailable)
    newest = a_set("new", new[0], min(new))
    others = [a_set(f"old-{index}", one[0], min(one)) for index, one in enumerate(old)]

    shrunk = rolling_update.old_sizes(deployment, newest, others)

    least = replicas - rolling_update.max_unavailable(deployment)
    before = sum(map(rolling_update.available, [newest, *others]))
    after = rolling_update.available(newest) + sum(
        min(rolling_update.available(one), shrunk.get(one["metadata"]["name"], rolling_update.size(one)))
        for one in others
    )
    assert after >= min(before, least)
    assert all(
        0 <= shrunk[name] <= rolling_update.size(one)
        for one in others
        if (name := one["metadata"]["name"]) in shrunk
    )
