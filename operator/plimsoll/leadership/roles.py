"""Decides which replica should hold which of the shared roles, each a Lease: rules without I/O or clock.

==============  =======  ==================================================================================
Role            Weight   Who holds its lease
==============  =======  ==================================================================================
rebalancing     1        runs plans, moves pods, writes the status of policies; is not given away
scheduler NAME  2        places the pods of one scheduler name
nodes 0..5      1        binds pods to one sixth of the nodes
==============  =======  ==================================================================================

The first two are the work, the third the nodes; each of these groups is balanced separately. The more roles a
replica holds, the longer it leaves a free lease to others. It requests a lease when its holder has so much
more weight that the transfer brings the two closer. This converges: between two replicas that differ by no
more than the weight of a role, that role never moves.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.cluster.node_shares import NODE_SHARES

#: Seconds that a replica leaves a free lease to others for each unit of its weight, and their maximum.
PATIENCE_S, LONGEST_PATIENCE_S = 0.5, 3.0

#: Seconds for which a lease that was given to another replica is left to that one.
PROMISED_S = 5.0

#: The valid names of a lease.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class RoleKind(StrEnum):
    """The kinds of roles."""

    REBALANCING = "rebalancing"
    SCHEDULER = "scheduler"
    NODES = "nodes"


#: Kinds of roles that are balanced together.
_WORK = frozenset({RoleKind.REBALANCING, RoleKind.SCHEDULER})


class Role(Struct, frozen=True, order=True):
    """One role; ``name`` is a scheduler name, or the number of a share of the nodes."""

    kind: RoleKind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()

    @property
    def weight(self) -> int:
        """Its weight in the balance."""
        return 2 if self.kind is RoleKind.SCHEDULER else 1

    @property
    def is_movable(self) -> bool:
        """Whether a living replica gives it away; moves under way are not handed over."""
        return self.kind is not RoleKind.REBALANCING

    def lease(self, base: str) -> str:
        """The name of its lease."""
        if not self.name:
            return f"{base}-{self.kind}"
        valid = _NAME.fullmatch(self.name) is not None
        name = self.name if valid else f"x-{hashlib.sha256(self.name.encode()).hexdigest()[:12]}"
        return f"{base}-{self.kind}-{name}"


REBALANCING = Role(RoleKind.REBALANCING)

NODE_ROLES = tuple(Role(RoleKind.NODES, str(number)) for number in range(NODE_SHARES))


def scheduler_role(name: str) -> Role:
    """The role of a scheduler name."""
    return Role(RoleKind.SCHEDULER, name)


class Holding(Struct, frozen=True):
    """The holder of a role, and the replica that requests it.

    Attributes:
        holder: The holder's identity; "" when the lease is free or has expired.
        wanted_by: The requesting replica's identity; "" for none.
        is_bound: Whether it goes with rebalancing: a profile whose victims are evicted with a record.
    """

    holder: str = ""
    wanted_by: str = ""
    is_bound: bool = False


Holdings = Mapping[Role, Holding]
"""Every role as this replica sees it."""


def patience_s(role: Role, holdings: Holdings, me: str) -> float:
    """Seconds for which a replica leaves the free lease of a role to others."""
    promised_to = holdings[role].wanted_by if role in holdings else ""
    if promised_to:
        return 0.0 if promised_to == me else PROMISED_S
    before = [
        each
        for each in _together(role, holdings)
        if not holdings[each].holder and _rank(each, me) < _rank(role, me)
    ]
    return min(PATIENCE_S * (_load(role, holdings, me) + _weight(before)), LONGEST_PATIENCE_S)


def may_take(role: Role, holdings: Holdings, me: str) -> bool:
    """Whether a replica may take a role: nodes are useful only to replicas that place pods."""
    if role.kind is RoleKind.NODES:
        return any(each.kind is RoleKind.SCHEDULER and held.holder == me for each, held in holdings.items())
    held = holdings.get(role, Holding())
    return not held.is_bound or holdings.get(REBALANCING, Holding()).holder == me


def wish(holdings: Holdings, me: str) -> Role | None:
    """The role that a replica should request; roles that it will be given already count as its own.

    While a role is free, it is claimed, and no role is requested.
    """
    due = {role: held for role, held in holdings.items() if _is_due(role, holdings, held.wanted_by)}
    seen = {
        role: replace(held, holder=held.wanted_by) if role in due else held for role, held in holdings.items()
    }
    found: list[tuple[int, tuple[int, str], Role]] = []
    for role, held in holdings.items():
        is_free = any(not holdings[each].holder for each in _together(role, holdings))
        if role not in due and held.wanted_by != me and not is_free and _is_due(role, seen, me):
            surplus = _load(role, seen, held.holder) - _load(role, seen, me)
            found.append((-surplus, _rank(role, me), role))
    return min(found)[2] if found else None


def gift(holdings: Holdings, me: str) -> Role | None:
    """The role that a replica should give away: a requested one, or nodes that it has no use for."""
    for role, held in sorted(holdings.items()):
        if held.holder != me or not role.is_movable:
            continue
        if _is_due(role, holdings, held.wanted_by):
            return role
        others = {each.holder for each in holdings.values()} - {"", me}
        if not may_take(role, holdings, me) and any(may_take(role, holdings, each) for each in others):
            return role
    return None


def _is_due(role: Role, holdings: Holdings, who: str) -> bool:
    """Whether the holder of a role should give it to a replica."""
    holder = holdings[role].holder
    if not role.is_movable or holder in ("", who) or not who or not may_take(role, holdings, who):
        return False
    return _load(role, holdings, holder) - _load(role, holdings, who) > role.weight


def _together(role: Role, holdings: Holdings) -> Iterable[Role]:
    """The roles that are balanced together with this one."""
    return (each for each in holdings if (each.kind in _WORK) == (role.kind in _WORK))


def _load(role: Role, holdings: Holdings, who: str) -> int:
    return _weight(each for each in _together(role, holdings) if holdings[each].holder == who)


def _weight(roles: Iterable[Role]) -> int:
    return sum(each.weight for each in roles)


def _rank(role: Role, who: str) -> tuple[int, str]:
    """The order in which a replica takes free roles; it differs between replicas."""
    return (-role.weight, hashlib.sha256(f"{who}/{role}".encode()).hexdigest())
