"""Slips in the election, and at the change of the leader."""

from __future__ import annotations

from typing import Any

from plimsoll.app.operator import Operator
from plimsoll.leadership.election import Election
from plimsoll.ports.writes import DONE, WriteOutcome
from simulation.planted.surgery import replaced, tampered_session


def _elected(operator: Operator) -> Any:
    """What takes part in the election."""
    leadership: Any = operator.leadership
    return leadership._elected


def fence_without_end(operator: Operator) -> None:
    """A leader writes until it notices that it leads no more."""
    replaced(operator.fence, "seconds_left", lambda _: lambda: 60.0)


def takes_the_lease_early(operator: Operator) -> None:
    """A candidate does not wait until the lease has expired."""
    if elected := _elected(operator):
        election: Election = elected._election
        replaced(election, "_expiry", lambda _: lambda: election._observed_at + 1.0)


def believes_other_clocks(operator: Operator) -> None:
    """The time that its holder wrote into a lease decides whether it has expired."""
    if elected := _elected(operator):
        election: Election = elected._election
        clock = operator.clock

        def made(expiry: Any) -> Any:
            def by_wall_clock() -> float:
                lease = election._observed
                if lease is None or not lease.holder:
                    return float(expiry())
                return clock.monotonic() + lease.renewed + lease.duration_s - clock.now()

            return by_wall_clock

        replaced(election, "_expiry", made)


def overwrites_the_lease(operator: Operator) -> None:
    """The lease is written whatever its version is by now."""

    def edit(method: str, path: str, body: Any) -> Any:
        if method == "PUT":
            body["metadata"].pop("resourceVersion", None)
        return method, path, body

    if elected := _elected(operator):
        tampered_session(elected._leases._session, edit)


def believes_refused_renewals(operator: Operator) -> None:
    """A lease that somebody else has written meanwhile counts as renewed."""

    def made(write: Any) -> Any:
        async def write_or_not(lease: Any) -> Any:
            answer, stored = await write(lease)
            return (DONE, lease) if answer.verdict is WriteOutcome.CONFLICT else (answer, stored)

        return write_or_not

    if elected := _elected(operator):
        replaced(elected._leases, "write", made)


def trusts_an_old_watch(operator: Operator) -> None:
    """A new leader does not list again what the old one wrote."""
    replaced(operator.startup, "until_listed", lambda _: _immediately)


async def _immediately(*_: object) -> None:
    return


def takes_over_nothing(operator: Operator) -> None:
    """A new leader does not go on with the moves of the old one."""
    replaced(operator.rebalancing, "_restart", _Forgetful)


class _Forgetful:
    """Reads the records, and leaves them as they are."""

    def __init__(self, restart: Any) -> None:
        self._keeper = restart.keeper

    async def recover(self) -> None:
        """Done."""
        await self._keeper.load()
        self._keeper.is_recovered = True

    async def recover_late(self) -> None:
        """Done."""
