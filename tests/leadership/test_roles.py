"""The distribution of roles converges, and all replicas have about the same then."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll.leadership.roles import (
    LONGEST_PATIENCE_S,
    NODE_ROLES,
    PROMISED_S,
    REBALANCING,
    Holding,
    Role,
    RoleKind,
    gift,
    may_take,
    patience_s,
    scheduler_role,
    wish,
)

BOTH = {scheduler_role("a"): Holding(), scheduler_role("b"): Holding(), REBALANCING: Holding()}


def loads(holdings: dict[Role, Holding], replicas: list[str], *, nodes: bool) -> list[int]:
    """How much each replica has, of the nodes or of the work."""
    found = Counter(dict.fromkeys(replicas, 0))
    for role, held in holdings.items():
        if (role.kind is RoleKind.NODES) is nodes and held.holder:
            found[held.holder] += role.weight
    return list(found.values())


@settings(max_examples=40)
@given(
    schedulers=st.integers(0, 7),
    replicas=st.lists(st.sampled_from("pqrst"), min_size=1, max_size=4, unique=True),
    data=st.data(),
)
def test_the_distribution_of_roles_converges(
    schedulers: int, replicas: list[str], data: st.DataObject
) -> None:
    """From any distribution, in any order; a role moves only if that makes things more even."""
    roles = [REBALANCING, *NODE_ROLES, *(scheduler_role(str(number)) for number in range(schedulers))]
    holder = st.sampled_from(["", *replicas])
    holdings = {role: Holding(data.draw(holder)) for role in roles}
    for _ in range(200):
        before = dict(holdings)
        for me in data.draw(st.permutations(replicas)):
            free = [each for each in roles if not holdings[each].holder and may_take(each, holdings, me)]
            if free:
                role = min(free, key=lambda each, me=me: patience_s(each, holdings, me))  # type: ignore[misc] # a lambda that keeps a variable of the loop
                holdings[role] = Holding(me)
            if (wanted := wish(holdings, me)) is not None:
                holdings[wanted] = replace(holdings[wanted], wanted_by=me)
            if (spare := gift(holdings, me)) is not None:
                assert spare.is_movable
                holdings[spare] = Holding(holdings[spare].wanted_by)
        if holdings == before:
            break
    else:
        raise AssertionError("roles go round and round")

    assert all(
        held.holder for role, held in holdings.items() if schedulers or role.kind is not RoleKind.NODES
    )
    work = loads(holdings, replicas, nodes=False)
    assert max(work) - min(work) <= 2
    if schedulers:
        placing = [each for each in replicas if may_take(NODE_ROLES[0], holdings, each)]
        nodes = loads(holdings, placing, nodes=True)
        assert sum(nodes) == len(NODE_ROLES)
        assert max(nodes) - min(nodes) <= 1


@pytest.mark.parametrize(
    ("held_by", "expected"),
    [
        (("me", "me", "me"), None),
        (("other", "other", "other"), RoleKind.SCHEDULER),  # 5 to 0
        (("other", "other", "me"), RoleKind.SCHEDULER),  # 4 to 1
        (("other", "me", "other"), None),  # 3 to 2
        (("other", "", "other"), None),  # the free one is claimed, not asked for
    ],
)
def test_a_replica_asks_only_for_what_makes_things_more_even(
    held_by: tuple[str, str, str], expected: RoleKind | None
) -> None:
    """A scheduler name weighs 2, rebalancing 1, and that is never asked for."""
    holdings = {role: Holding(holder) for role, holder in zip(BOTH, held_by, strict=True)}

    wanted = wish(holdings, "me")

    assert (None if wanted is None else wanted.kind) is expected


def test_who_has_more_leaves_a_free_role_to_others_for_longer() -> None:
    """And one that was promised to somebody for longest."""
    role = scheduler_role("c")
    nothing = {**BOTH, role: Holding()}
    some = {**dict.fromkeys(BOTH, Holding("me")), role: Holding()}

    assert patience_s(role, some, "me") == 2.5
    assert patience_s(role, some, "me") > patience_s(role, nothing, "me")
    assert patience_s(role, some, "other") == 0
    promised = {**some, role: Holding(wanted_by="other")}
    assert patience_s(role, promised, "me") == PROMISED_S > LONGEST_PATIENCE_S
    assert patience_s(role, promised, "other") == 0


def test_a_profile_that_evicts_goes_with_rebalancing() -> None:
    """Its victims are moves on record: one process has them all."""
    role = scheduler_role("evicts")
    holdings = {REBALANCING: Holding("one"), role: Holding("two", is_bound=True)}

    assert gift(holdings, "two") == role
    assert not may_take(role, holdings, "two")
    assert may_take(role, holdings, "one")
    assert wish(holdings, "three") is None


@pytest.mark.parametrize(
    ("role", "lease"),
    [
        (REBALANCING, "p-rebalancing"),
        (scheduler_role("gpu.batch"), "p-scheduler-gpu.batch"),
        (scheduler_role("My_Own"), "p-scheduler-x-c1cbf5ad8738"),
        (NODE_ROLES[5], "p-nodes-5"),
    ],
)
def test_leases_are_named_after_roles(role: Role, lease: str) -> None:
    """As far as scheduler names may be names of objects."""
    assert role.lease("p") == lease
