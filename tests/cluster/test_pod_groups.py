"""Members and progress of pod groups."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pod_groups import Census, Groups, counts
from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted, PodAdded, PodDeleted, PodUpdated
from plimsoll.model.kinds.pod_group import PodGroupStatus
from plimsoll.testing.builders import a_pod
from scheduling.gangs.gang_scene import a_group, a_member

LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("census", "told", "phase"),
    [
        pytest.param(Census(), {}, "Pending", id="nobody"),
        pytest.param(Census(present=2), {}, "Pending", id="too-few"),
        pytest.param(Census(present=3), {}, "PreScheduling", id="not-tried-yet"),
        pytest.param(Census(present=3), {"is_refused": True}, "Pending", id="no-room"),
        pytest.param(Census(present=3, scheduled=2), {}, "Scheduling", id="some-bound"),
        pytest.param(Census(present=3, scheduled=2), {"is_overdue": True}, "Unknown", id="too-late"),
        pytest.param(Census(present=3, scheduled=3, running=1), {}, "Scheduled", id="all-bound"),
        pytest.param(Census(present=3, scheduled=3, running=3), {"is_overdue": True}, "Running", id="run"),
        pytest.param(Census(present=3, scheduled=2, running=2, succeeded=1), {}, "Running", id="one-ended"),
        pytest.param(Census(present=2, scheduled=2, running=2, failed=1), {}, "Failed", id="one-failed"),
        pytest.param(Census(present=3, succeeded=3), {}, "Finished", id="all-ended"),
        pytest.param(Census(present=3, succeeded=3, failed=1), {}, "Finished", id="enough-ended"),
    ],
)
def test_phases(census: Census, told: dict[str, bool], phase: str) -> None:
    """Of a group of three, as scheduler-plugins' controller and API have them."""
    facts = {"is_refused": False, "is_overdue": False, **told}

    assert census.phase(3, **facts) == phase


def test_a_member_counts_while_it_waits_runs_or_has_ended_well() -> None:
    """Not when it failed, or leaves; who has ended well counts although it is being deleted."""
    assert counts(a_member("waits"))
    assert counts(a_member("runs", node="n"))
    assert counts(a_member("ended", status={"phase": "Succeeded"}, metadata=LEAVING))
    assert not counts(a_member("failed", status={"phase": "Failed"}))
    assert not counts(a_member("leaves", node="n", metadata=LEAVING))


def test_what_the_status_of_a_group_says_starts_no_gang() -> None:
    """Users may write it: members are counted by the pods themselves."""
    status = PodGroupStatus(
        phase="Running", scheduled=3, running=3, schedule_start_time="2026-01-01T00:00:00Z"
    )
    groups = Groups()
    groups.observe(ObjectAdded(msgspec.structs.replace(a_group(members=3), status=status)))
    groups.observe(PodAdded(a_member("m")))

    assert groups.find("default/train").obstacle().startswith("cannot find enough sibling pods")
    assert groups.find("default/train").census() == Census(present=1)


def test_nothing_is_kept_of_what_is_gone() -> None:
    """Neither of pods nor of groups, in whatever order they go."""
    groups = Groups()
    groups.observe(ObjectAdded(a_group()))
    groups.observe(PodAdded(a_member("m")))
    groups.observe(ObjectDeleted(a_group()))
    assert groups.find("default/train").obstacle().startswith("waiting for PodGroup default/train")

    groups.observe(PodDeleted(a_member("m")))

    assert list(groups) == []


def test_a_pod_that_changes_its_label_changes_its_group() -> None:
    """It is in one group at a time, or in none."""
    groups = Groups()
    groups.observe(PodAdded(a_member("m")))
    groups.observe(PodUpdated(a_member("m"), a_member("m", group="other")))
    assert groups.find("default/train") is None
    assert list(groups.find("default/other").members) == ["uid-default-m"]

    groups.observe(PodUpdated(a_member("m", group="other"), a_pod("m")))

    assert list(groups) == []


STATES = [{}, {"node": "n"}, {"status": {"phase": "Failed"}}, {"metadata": LEAVING}, {"group": "other"}]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([*STATES, None])), max_size=40))
def test_who_is_present_is_counted_right(story: list[tuple[int, dict[str, Any] | None]]) -> None:
    """Whatever happens to members: the kept number is the one that counting gives."""
    groups = Groups()
    known: dict[Any, Any] = {}
    for number, state in story:
        name = f"m{number}"
        if state is None:
            if name in known:
                groups.observe(PodDeleted(known.pop(name)))
            continue
        pod = a_member(name, **state)
        groups.observe(PodUpdated(known[name], pod) if name in known else PodAdded(pod))
        known[name] = pod

    for group in groups:
        assert group.present == len(group.counting()) == group.census().present
    assert sum(len(group.members) for group in groups) == len(known)


def test_pods_are_gone_through_when_other_schedulers_derive_groups() -> None:
    """Not at each change of a policy: a cluster may have hundreds of thousands."""
    groups = Groups()
    for deriving, left in (((), 2), (("a",), 0), (("a",), 2), (("b",), 0)):
        pods = iter([a_pod("p", schedulerName="a"), a_pod("q", schedulerName="b")])

        groups.derive_for(frozenset(deriving), pods)

        assert len(list(pods)) == left
