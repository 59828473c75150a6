"""Decides which devices of one node the claims of a pod get: the first set that a bounded search finds.

The search is depth first, in the order of claims, requests and devices; it takes the first solution and
scores none. The number of steps can be exponential; a search gives up after a limit.

Source: Kubernetes v1.36, ``structured/internal/incubating/allocator_incubating.go``. Apparent accidents of
that code which decide which device is chosen are kept, with a comment.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct

from plimsoll.devices.amounts import Amounts, by_full_name, consumed
from plimsoll.devices.constraints import ClaimConstraint, constraints_of
from plimsoll.devices.pools import DeviceID, Pool, PooledDevice, PoolKey, PoolState
from plimsoll.devices.requests import MOST_DEVICES, Expression, Request, WantedClaim, WantedDevices
from plimsoll.devices.search_limits import (
    STEPS_A_SECOND,
    AllocationError,
    StepLimit,
    UnusablePoolError,
    frames,
)
from plimsoll.devices.taken import Taken

Matches: TypeAlias = Callable[[Expression, PooledDevice, StepLimit], bool]
"""Evaluates a selector, and takes the steps for it; raises :class:`AllocationError`."""


class SearchAnswer(IntEnum):
    """The result of a part of the search."""

    NO = 0
    FOUND = 1
    TOO_MANY = 2


class Given(Struct, frozen=True, eq=False):
    """A device that was chosen for a request.

    Attributes:
        wanted: The request.
        device: The device.
        capacity: The consumed capacity, by full name, of a device that several claims may use, else None.
    """

    wanted: WantedDevices
    device: PooledDevice
    capacity: Amounts | None


class Found(Struct, frozen=True):
    """A solution: the devices of each claim, and the chosen alternative of each of its lists."""

    given: tuple[tuple[Given, ...], ...]
    chosen: Mapping[tuple[int, int], int]


def first_found(
    claims: Sequence[WantedClaim], pools: Sequence[Pool], taken: Taken, matches: Matches
) -> Found | None:
    """The first solution; None without one, or if the search failed."""
    try:
        return Search(claims, pools, taken, matches).run()
    except AllocationError:
        return None


class Search:
    """One search.

    Args:
        claims: The claims to allocate.
        pools: The pools that the node reaches.
        taken: The devices that are not free.
        matches: Evaluates selectors.
        most_steps: The number of steps after which the search gives up.

    Attributes:
        steps: Number of steps so far.
    """

    def __init__(
        self,
        claims: Sequence[WantedClaim],
        pools: Sequence[Pool],
        taken: Taken,
        matches: Matches,
        most_steps: int = 10 * STEPS_A_SECOND,
    ) -> None:
        self._claims = claims
        self._pools = pools
        self._taken = taken
        self._matches = matches
        self.steps = StepLimit(most_steps)
        self._devices = [each for pool in pools if pool.state is PoolState.COMPLETE for each in pool.devices]
        self._free = [each for each in self._devices if each.id not in taken.whole]
        self._pool_of = {each.key: each for each in pools}
        self._answers: dict[tuple[int, int], bool] = {}
        self._all: dict[int, list[PooledDevice]] = {}
        self._constraints: list[tuple[ClaimConstraint, ...]] = [
            constraints_of(each.constraints) for each in claims
        ]
        self._given: list[list[Given]] = [[] for _ in claims]
        self._chosen: dict[tuple[int, int], int] = {}
        self._wanted: dict[tuple[int, str], Amounts] = {}  #: capacities by full name
        self._held: dict[DeviceID, list[int]] = {}
        self._shared: dict[DeviceID, dict[str, int]] = {}
        #: counters that devices of this search consume, by pool
        self._tally: dict[PoolKey, dict[tuple[str, str], int]] = {}
        self._left: dict[PoolKey, dict[tuple[str, str], int]] = {}

    def run(self) -> Found | None:
        """The first solution; None without one.

        Raises:
            AllocationError: A selector failed, a claim requests more than the maximum, or the search took too
                long; UnusablePoolError if this node alone cannot be searched.
        """
        for claim in self._claims:
            self._prepare(claim)
        with frames(self._depth()):
            if self._one(0, 0, None, 0, 0) is not SearchAnswer.FOUND:
                return None
        return Found(tuple(tuple(each) for each in self._given), dict(self._chosen))

    @property
    def is_late(self) -> bool:
        """Whether the search gave up."""
        return self.steps.is_exceeded

    def _depth(self) -> int:
        """Maximum number of stack frames of the search."""
        return sum(4 + 5 * len(each.requests) + 3 * MOST_DEVICES for each in self._claims)

    # -- before the search -------------------------------------------------------------------------------

    def _prepare(self, claim: WantedClaim) -> None:
        least = sum(
            min((self._count(each, claim) for each in request.alternatives), default=0)
            for request in claim.requests
        )
        if least > MOST_DEVICES:
            raise AllocationError(
                f": number of requested devices {least} exceeds the claim limit of {MOST_DEVICES}",
                claim.claim.key,
            )
        for position, constraint in enumerate(claim.constraints):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                empty = "empty constraint (unsupported constraint type?)"
                raise AllocationError(f", constraint #{position}: {empty}", claim.claim.key)

    def _count(self, wanted: WantedDevices, claim: WantedClaim) -> int:
        if wanted.fault:
            raise AllocationError(wanted.fault, claim.claim.key)
        if not wanted.takes_all:
            return wanted.count
        found: list[PooledDevice] = []
        for pool in self._pools:
            if pool.state is not PoolState.COMPLETE:
                raise UnusablePoolError(
                    f", request {wanted.own_name}: asks for all devices, but resource pool "
                    f"{pool.key.driver}/{pool.key.name} is {pool.state.value}",
                    claim.claim.key,
                    is_invalid=pool.state is PoolState.INVALID,
                )
            self.steps.take(len(pool.devices))
            found += [each for each in pool.devices if self._is_selected(wanted, each)]
        self._all[id(wanted)] = [each for each in found if self._has_capacity(wanted, each)]
        return len(self._all[id(wanted)])

    # -- the search --------------------------------------------------------------------------------------

    def _one(
        self, claim: int, request: int, wanted: WantedDevices | None, count: int, start: int
    ) -> SearchAnswer:
        """Continue with ``count`` devices of a request chosen, from the device at ``start``."""
        self.steps.take(1)
        if claim == len(self._claims):
            return SearchAnswer.FOUND
        requests = self._claims[claim].requests
        if request == len(requests):
            answer = self._one(claim + 1, 0, None, 0, 0)
            return SearchAnswer.NO if answer is SearchAnswer.TOO_MANY else answer
        if wanted is None:
            asked = requests[request]
            if asked.is_list:
                return self._first_available(claim, request, asked)
            wanted = asked.alternatives[0]
        return self._next_device(claim, request, wanted, count, start)

    def _next_device(
        self, claim: int, request: int, wanted: WantedDevices, count: int, start: int
    ) -> SearchAnswer:
        matching = self._all[id(wanted)] if wanted.takes_all else None
        if matching is not None and not matching:
            return SearchAnswer.NO
        missing = (wanted.count if matching is None else len(matching)) - count
        if missing <= 0:
            return self._one(claim, request + 1, None, 0, 0)
        if len(self._given[claim]) + missing > MOST_DEVICES:
            return SearchAnswer.TOO_MANY
        if matching is not None:
            return self._next_of_all(claim, request, wanted, count, matching[count])
        return self._first_usable(claim, request, wanted, count, start)

    def _first_usable(
        self, claim: int, request: int, wanted: WantedDevices, count: int, start: int
    ) -> SearchAnswer:
        devices = self._devices if wanted.is_admin else self._free
        for place in range(start, len(devices)):
            device = devices[place]
            self.steps.take(1)
            if not self._is_usable(claim, wanted, device):
                continue
            given = self._take(claim, wanted, device, must=False)
            if given is None:
                continue
            answer = self._one(claim, request, wanted, count + 1, place + 1)
            if answer is SearchAnswer.FOUND:
                return answer
            self._give_back(claim, given)
            if answer is SearchAnswer.TOO_MANY:
                return answer
        return SearchAnswer.NO

    def _first_available(self, claim: int, request: int, asked: Request) -> SearchAnswer:
        answers = []
        for place, wanted in enumerate(asked.alternatives):
            answer = self._one(claim, request, wanted, 0, 0)
            if answer is SearchAnswer.FOUND:
                self._chosen[claim, request] = place
                return answer
            answers.append(answer)
        return (
            SearchAnswer.TOO_MANY
            if all(each is SearchAnswer.TOO_MANY for each in answers)
            else SearchAnswer.NO
        )

    def _next_of_all(
        self, claim: int, request: int, wanted: WantedDevices, count: int, device: PooledDevice
    ) -> SearchAnswer:
        given = self._take(claim, wanted, device, must=True)
        if given is None:
            return SearchAnswer.NO
        answer = self._one(claim, request, wanted, count + 1, 0)
        if answer is not SearchAnswer.FOUND:
            self._give_back(claim, given)
        return answer

    # -- one device --------------------------------------------------------------------------------------

    def _is_usable(self, claim: int, wanted: WantedDevices, device: PooledDevice) -> bool:
        return (
            self._is_free(claim, wanted, device)
            and self._is_selected(wanted, device)
            and self._has_capacity(wanted, device)
        )

    def _is_free(self, claim: int, wanted: WantedDevices, device: PooledDevice) -> bool:
        if wanted.is_admin:
            return claim not in self._held.get(device.id, ())
        if device.id in self._taken.whole:
            return False
        if device.device.allow_multiple_allocations:
            return True
        # It may have been shared before its slice changed.
        return device.id not in self._held and not self._taken.is_consumed(device.id)

    def _is_selected(self, wanted: WantedDevices, device: PooledDevice) -> bool:
        key = (id(wanted), id(device))
        answer = self._answers.get(key)
        if answer is None:
            answer = True
            for each in wanted.expressions:
                if not self._matches(each, device, self.steps):
                    answer = False
                    break
            answer = self._answers[key] = answer and device.is_reached
        return answer

    def _has_capacity(self, wanted: WantedDevices, device: PooledDevice) -> bool:
        if not device.device.capacity:
            return not wanted.capacity
        amounts = self._consumed(wanted, device)
        if amounts is None:
            return False
        if not device.device.allow_multiple_allocations:
            return True
        before, here = self._taken.consumed(device.id), self._shared.get(device.id, {})
        return all(
            amount + before.get(name, 0) + here.get(name, 0) <= device.amounts[name]
            for name, amount in amounts.items()
        )

    def _consumed(self, wanted: WantedDevices, device: PooledDevice) -> Amounts | None:
        key = (id(wanted), device.id.driver)
        if key not in self._wanted:
            self._wanted[key] = by_full_name(wanted.capacity, device.id.driver)
        return consumed(device.capacity, self._wanted[key])

    def _take(self, claim: int, wanted: WantedDevices, device: PooledDevice, *, must: bool) -> Given | None:
        """Take a device; None if it is not available."""
        if not self._is_free(claim, wanted, device):
            return None
        if device.device.consumes_counters and not self._draw(device):
            return None
        # A device that is rejected from here on keeps its consumption of counters, as upstream.
        if not wanted.tolerates(device.device.taints):
            return None
        passed: list[ClaimConstraint] = []
        for constraint in self._constraints[claim]:
            if not constraint.add(wanted.request, wanted.alternative, device):
                if must:
                    raise AllocationError(
                        f", request {wanted.own_name}: cannot add device {device.id} because a claim "
                        "constraint would not be satisfied",
                        self._claims[claim].claim.key,
                    )
                for each in passed:
                    each.remove(wanted.request, wanted.alternative)
                return None
            passed.append(constraint)
        capacity = None
        if device.device.allow_multiple_allocations:
            if not self._has_capacity(wanted, device):
                return None
            capacity = self._consumed(wanted, device) or {}
            here = self._shared.setdefault(device.id, {})
            for name, amount in capacity.items():
                here[name] = here.get(name, 0) + amount
        else:
            self._held.setdefault(device.id, []).append(claim)
        given = Given(wanted, device, capacity)
        self._given[claim].append(given)
        return given

    def _give_back(self, claim: int, given: Given) -> None:
        device = given.device
        self._given[claim].pop()
        for constraint in self._constraints[claim]:
            constraint.remove(given.wanted.request, given.wanted.alternative)
        if given.capacity is not None:
            # A shared device's consumption of counters stays, as upstream.
            here = self._shared[device.id]
            for name, amount in given.capacity.items():
                here[name] -= amount
            return
        held = self._held[device.id]
        held.remove(claim)
        if not held:
            del self._held[device.id]
        if device.device.consumes_counters:
            self._return_counters(device)

    def _draw(self, device: PooledDevice) -> bool:
        """Consume a device's counters in its pool; False if they do not suffice."""
        if device.device.allow_multiple_allocations and (
            device.id in self._shared or self._taken.is_consumed(device.id)
        ):
            return True
        pool = self._pool_of[PoolKey(device.id.driver, device.id.pool)]
        tally = self._tally.setdefault(pool.key, {})
        for counter, amount in device.consumes.items():
            tally[counter] = tally.get(counter, 0) + amount
        left = self._counters_left(pool)
        if all(tally.get(counter, 0) <= amount for counter, amount in left.items()):
            return True
        self._return_counters(device)
        return False

    def _return_counters(self, device: PooledDevice) -> None:
        tally = self._tally[PoolKey(device.id.driver, device.id.pool)]
        for counter, amount in device.consumes.items():
            tally[counter] -= amount

    def _counters_left(self, pool: Pool) -> Mapping[tuple[str, str], int]:
        """A pool's counters less the consumption of allocated devices."""
        known = self._left.get(pool.key)
        if known is None:
            known = dict(pool.counters)
            for each in (*pool.devices, *pool.others):
                if each.device.consumes_counters and self._taken.is_consumed(each.id):
                    for counter, amount in each.consumes.items():
                        if counter in known:
                            known[counter] -= amount
            self._left[pool.key] = known
        return known
