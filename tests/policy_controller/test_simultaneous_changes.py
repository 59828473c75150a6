"""Policies change while others are put into effect: in the end all is as if one had followed the other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.policy_controller.status import RetriedStatuses
from plimsoll.testing.fakes import FakeClock, FakePolicyStatuses
from policy_controller.test_controller import Scene, a_policy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from plimsoll.ports.writes import WriteResult

#: Each older than the next; two have one scheduler name.
SCHEDULERS = {"a": "one", "b": "two", "c": "one"}
MOVES = {"mode": "Enforce", "strategies": [{"name": "RemoveDuplicates"}]}

#: What is wrong with all policies.
NOTES = ("one thing is bad", "another thing is bad")

changes = st.lists(
    st.tuples(
        st.sampled_from(tuple(SCHEDULERS)),
        st.sampled_from(("moves", "moves", "extended", "suspended", "removed", "made again", *NOTES)),
        st.sampled_from((0.0, 5.0, 20.0)),
        st.sampled_from((0.0, 1.0, 10.0, 30.0)),
    ),
    min_size=2,
    max_size=7,
)


class SlowStatuses(FakePolicyStatuses):
    """A server that carries out a write as long after its request as the test says."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock, self.takes_s = clock, 0.0

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge the status then."""
        if self.takes_s:
            await self.clock.sleep(self.takes_s)
        return await super().write_status(name, status)


def document(name: str, how: str, number: int) -> dict[str, Any]:
    """A policy as it is after a change."""
    scheduling: dict[str, Any] = {"schedulerName": SCHEDULERS[name]}
    if how == "extended":
        scheduling["extenders"] = [{"urlPrefix": f"http://{name}", "filterVerb": "filter"}]
    spec = {"scheduling": scheduling, "suspend": how == "suspended", "rebalancing": MOVES}
    uid = f"uid-{name}-{number if how == 'made again' else 0}"
    return a_policy(name, uid=uid, generation=number, created=f"2026-01-01T00:00:0{ord(name) % 10}Z", **spec)


def in_effect(scene: Scene) -> tuple[Any, ...]:
    """What an operator does, and what it says of the policies that there are."""
    names = sorted(scene.policies.uids())
    return (
        sorted(scene.served),
        [[each.name for each in one.profile.extenders] for _, one in sorted(scene.served.items())],
        sorted(scene.rebalancing.names),
        scene.rebalancing.predicting,
        scene.extenders.retained,
        {name: [scene.condition(name, kind) for kind in ("Accepted", "Ready", "Degraded")] for name in names},
    )


async def played(drawn: list[tuple[str, str, float, float]]) -> None:
    """Each change begins while statuses are still written, and connections closed, for those before it."""
    scene, other = Scene(), Scene()
    scene.statuses = SlowStatuses(scene.clock)
    scene.policies._statuses._writer = RetriedStatuses(scene.statuses, scene.clock)
    retain = scene.extenders.retain

    async def slow(endpoints: Collection[Any]) -> None:
        await retain(endpoints)
        if scene.statuses.takes_s:
            await scene.clock.sleep(scene.statuses.takes_s)

    scene.extenders.retain = slow  # type: ignore[method-assign] # a server that answers late
    tasks, last = [], dict[str, dict[str, Any]]()
    for number, (name, how, takes_s, pause_s) in enumerate(drawn):
        scene.statuses.takes_s = takes_s
        known = last.get(name)
        if how in NOTES:
            for one in (scene, other):
                one.policies.degrade("Bad", how)
            tasks.append(asyncio.ensure_future(scene.policies.refresh()))
        elif how == "removed":
            last.pop(name, None)
            tasks.append(asyncio.ensure_future(scene.policies.remove(name)))
        else:
            last[name] = made = document(name, how, number)
            if known is not None and how != "made again":
                made["metadata"]["uid"] = known["metadata"]["uid"]
            tasks.append(asyncio.ensure_future(scene.policies.set(last[name])))
        await scene.clock.advance(pause_s)
    await scene.clock.advance(100)
    await asyncio.gather(*tasks)
    for each in last.values():
        await other.policies.set(each)
    if last:
        assert in_effect(scene) == in_effect(other)
    else:
        assert (scene.served, scene.rebalancing.names) == ({}, [])


#: What is said changes, and changes back while it is written.
CHANGES_BACK = [
    ("a", NOTES[0], 0.0, 0.0),
    ("a", "moves", 0.0, 0.0),
    ("a", NOTES[1], 20.0, 1.0),
    ("a", NOTES[0], 0.0, 0.0),
]
#: A policy goes while connections to another one's extender are still being closed.
GOES_MEANWHILE = [
    ("a", "moves", 0.0, 0.0),
    ("b", "extended", 0.0, 0.0),
    ("b", "moves", 20.0, 1.0),
    ("a", "removed", 0.0, 0.0),
]


@settings(max_examples=25)
@example(CHANGES_BACK)
@example(GOES_MEANWHILE)
@given(changes)
def test_of_simultaneous_changes_the_last_decides(drawn: list[tuple[str, str, float, float]]) -> None:
    asyncio.run(played(drawn))
