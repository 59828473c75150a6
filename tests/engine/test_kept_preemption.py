"""Preemption decides with what is kept of nominations and victims as a new scheduler does."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from plimsoll.engine.attempt import schedule
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.row_statuses import RowStatuses
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Code, Registry, unresolvable, unschedulable
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)
NODES = ("n0", "n1")
STARTED = datetime(2026, 1, 1, tzinfo=UTC)
#: Of two shapes and two priorities; the first three are one template.
PREEMPTORS = {
    **{f"high-{number}": a_pod(f"high-{number}", cpu="2", priority=100) for number in range(3)},
    "larger": a_pod("larger", cpu="3", priority=100),
    "middling": a_pod("middling", cpu="2", priority=50),
}
#: What happens, to whom, and where.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["nominate"] * 4 + ["withdraw", "place", "leave", "return", "change", "start"]),
        st.sampled_from(sorted(PREEMPTORS)),
        st.sampled_from(NODES),
        st.integers(0, 2),
    ),
    min_size=3,
    max_size=9,
)


def decided(scheduler: ProfileScheduler, name: str) -> Any:
    """All of a decision but what plugins remember."""
    decision = schedule(scheduler, scheduler.cluster.templates.info(PREEMPTORS[name]))
    made = decision.nomination
    nomination = None if made is None else (made.status, made.node, made.victims, made.outranked)
    return decision.outcome, decision.node, decision.message, decision.diagnosis, nomination


@settings(suppress_health_check=list(HealthCheck))
@given(STEPS, st.sampled_from([0, 1, 2]))
@example([("nominate", "high-0", "n0", 0), ("nominate", "larger", "n0", 0)], 0)
@example([("nominate", "high-0", "n0", 0), ("withdraw", "larger", "n0", 0)], 0)
@example(
    [("nominate", "high-0", "n0", 0), ("nominate", "larger", "n0", 0), ("nominate", "high-1", "n0", 0)], 0
)
@example([("nominate", "high-0", "n0", 0), ("place", "high-0", "n1", 0)], 0)
@example([("withdraw", "larger", "n1", 0), ("start", "high-0", "n0", 1), ("start", "high-0", "n0", 0)], 0)
def test_decisions_equal_those_of_a_new_scheduler(
    steps: list[tuple[str, str, str, int]], fewest: int
) -> None:
    """While nominations come and go, victims start, leave and return, and preemptors are placed."""
    nodes = [a_node(name, cpu=4, pods=4) for name in NODES]
    small = [
        a_pod(f"{name}-{place}", node=name, cpu="2", priority=[10, 10, 60][(place + row) % 3])
        for row, name in enumerate(NODES)
        for place in range(2 if row >= fewest else 1)
    ]
    cluster = a_cluster(nodes, small)
    kept = ProfileScheduler(PROFILE, cluster)
    for step, name, node, number in steps:
        preemptor = cluster.templates.info(PREEMPTORS[name])
        resident = next((each for each in small if each.name == f"{node}-{number}"), small[0])
        if step == "nominate":
            kept.nominator.add(preemptor, node)
        elif step == "withdraw":
            kept.nominator.remove(preemptor.uid)
        elif step == "place":  # its nomination may be withdrawn later
            cluster.place(preemptor, node)
        elif step == "leave":
            cluster.displace(resident.uid)
            cluster.displace(preemptor.uid)
        elif step == "return":
            cluster.place(cluster.templates.info(resident), resident.node_name)
        elif step == "start" and resident.uid in cluster.pods:
            started = STARTED + timedelta(hours=number)
            status = msgspec.structs.replace(resident.status, start_time=started)
            running = msgspec.structs.replace(resident, status=status)
            cluster.place(cluster.templates.info(running), resident.node_name)
        elif step == "change":
            cluster.set_node(a_node(node, cpu=4 + number, pods=4))
        afresh = cluster.fork()
        afresh._indexes.clear()
        placed = {pod.pod.name for pod in cluster.pods.values()}
        for each in sorted(PREEMPTORS.keys() - placed):
            new = ProfileScheduler(PROFILE, afresh, nominator=kept.nominator)
            assert decided(kept, each) == decided(new, each)


@given(
    st.dictionaries(
        st.integers(0, 9), st.sampled_from([unschedulable("a"), unresolvable("b"), unresolvable("c")])
    )
)
def test_statuses_of_many_rows_are_those_that_were_given(given_statuses: dict[int, Any]) -> None:
    """Row by row, in counts, and by code."""
    statuses = RowStatuses.of(given_statuses)

    assert dict(statuses) == given_statuses
    values = list(given_statuses.values())
    assert dict(statuses.counted()) == {status: values.count(status) for status in values}
    have = dict(zip(statuses.rows.tolist(), statuses.have(Code.UNSCHEDULABLE).tolist(), strict=True))
    assert have == {row: status.code is Code.UNSCHEDULABLE for row, status in given_statuses.items()}
