"""Takes part in the elections of all roles that replicas share, and balances the roles.

It runs in the election's thread. A replica watches the lease of every role, claims those that it should have
(:mod:`plimsoll.leadership.roles`), and requests others by writing its identity on their leases. It reports a
role to give away through ``given``, in the main loop, which stops the work first.

The lease of the group precedes the others. All replicas that share the work renew it under one identity.
While one of them lives, a process that would do all the work by itself does not get the lease; while such a
process holds it, none of the replicas does anything.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.leadership.election import Election, Terms
from plimsoll.leadership.leader import Elected
from plimsoll.leadership.roles import Holding, Holdings, Role, gift, may_take, patience_s, wish
from plimsoll.ports.clock import Clock
from plimsoll.ports.leases import LeasePort

#: The identity under which all replicas that share the work renew the group's lease.
GROUP = "replicas-that-share-the-work"

#: Seconds between two checks of the holders, and seconds of frequent reads of a lease that was requested.
LOOK_S, HURRY_S = 0.25, 10.0


class RoleCandidacy(Struct, frozen=True):
    """This replica's part in the election of one role."""

    election: Election
    elected: Elected
    leases: LeasePort


class RoleElections:
    """The elections of this replica.

    Args:
        leases: The lease of a role.
        elect: Builds the :class:`Elected` of an election over a lease.
        notify: Runs a call in the main loop.
        given: Called there with a role that should be given away; repeated until it is.

    Attributes:
        identity: Differs from every other replica's.
        group: The lease of the group.
        bound: The roles that go together with rebalancing; replaced as a whole.
    """

    def __init__(
        self,
        identity: str,
        terms: Terms,
        group: LeasePort,
        leases: Callable[[Role], LeasePort],
        elect: Callable[[Election, LeasePort], Elected],
        notify: Callable[[Callable[[], None]], object],
        given: Callable[[Role], None],
        clock: Clock,
    ) -> None:
        self.identity = identity
        self.bound: frozenset[Role] = frozenset()
        self._terms = terms
        self._leases = leases
        self._elect = elect
        self._notify = notify
        self._given = given
        self._clock = clock
        election = Election(GROUP, terms, stands=False, is_shared=True)
        self.group = RoleCandidacy(election, elect(election, group), group)
        # Replaced as a whole: the main loop adds and removes roles.
        self._candidates: Mapping[Role, RoleCandidacy] = {}
        #: The last state in which there was nothing to request and nothing to give away.
        self._settled: tuple[Mapping[Role, RoleCandidacy], Holdings] | None = None

    @property
    def now(self) -> float:
        """The current time, in seconds that never go back."""
        return self._clock.monotonic()

    @property
    def candidates(self) -> Mapping[Role, RoleCandidacy]:
        """The current candidacies."""
        return self._candidates

    def enter(self, role: Role) -> Elected:
        """Begin to take part in the election of a role; the caller runs the returned object."""
        election, leases = Election(self.identity, self._terms, stands=False), self._leases(role)
        entered = RoleCandidacy(election, self._elect(election, leases), leases)
        self._candidates = {**self._candidates, role: entered}
        return entered.elected

    def leave(self, role: Role) -> None:
        """Stop taking part: the role does not exist any more."""
        self._candidates = {each: found for each, found in self._candidates.items() if each != role}

    def holdings(self) -> Holdings:
        """The holder of each role, as far as observed."""
        now, bound = self._clock.monotonic(), self.bound
        found: dict[Role, Holding] = {}
        for role, each in self._candidates.items():
            observed = each.election.observed
            wanted_by = "" if observed is None else observed.wanted_by
            found[role] = Holding(each.election.live_holder(now), wanted_by, role in bound)
        return found

    async def run(self) -> None:
        """Check, claim, request and give roles until cancelled."""
        while True:
            await self._clock.sleep(LOOK_S)
            await self.look()

    async def look(self) -> None:
        """Decide which roles to claim, to request and to give away."""
        candidates, now = self._candidates, self._clock.monotonic()
        if not self.group.election.is_leading(now) or not all(
            each.election.has_looked for each in candidates.values()
        ):
            return
        holdings = self.holdings()
        if self._settled is not None and self._settled[0] is candidates and self._settled[1] == holdings:
            return  # the rules depend on nothing else
        claims = False  #: whether a claim is under way; whether it was right is decided later
        for role, each in candidates.items():
            if each.election.is_leading(now):
                continue
            if each.election.is_claiming:
                claims = True
                continue
            each.election.patience_s = patience_s(role, holdings, self.identity)
            stood, each.election.stands = each.election.stands, may_take(role, holdings, self.identity)
            if each.election.stands and not stood:
                each.elected.stand()
        wanted, spare = wish(holdings, self.identity), gift(holdings, self.identity)
        is_settled = wanted is None and spare is None and not claims
        self._settled = (candidates, holdings) if is_settled else None
        if wanted is not None:
            await self._ask(candidates[wanted])
        if spare is not None:
            self._notify(partial(self._given, spare))

    async def _ask(self, candidate: RoleCandidacy) -> None:
        """Write our identity on a lease to request it; its holder reads that at its next renewal."""
        observed = candidate.election.observed
        if observed is None or observed.wanted_by:
            return
        answer, _ = await candidate.leases.write(replace(observed, wanted_by=self.identity))
        if answer.is_done:
            candidate.election.hurries_until = self._clock.monotonic() + HURRY_S
        candidate.elected.stand()  # read now: it stands already

    async def release(self) -> None:
        """Release all leases except the group's, unless a write of ours may still happen."""
        await asyncio.gather(*(each.elected.release() for each in self._candidates.values()))

    def overdue_s(self) -> float:
        """Seconds by which the latest election's next step is overdue."""
        every = (self.group, *self._candidates.values())
        return max((each.elected.overdue_s() for each in every), default=-math.inf)
