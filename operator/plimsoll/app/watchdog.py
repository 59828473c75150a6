"""The dead man's switch of adoption: withdraws it when nobody renews the operator's Lease.

It compares no clocks: a Lease is stale once it was seen unchanged for the time that it is valid, as other
candidates judge it. An answer that does not come says nothing about the leader.
"""

import asyncio
from pathlib import Path

from plimsoll.adoption.admission_objects import PARAMETER
from plimsoll.app.candidacy import lease_namespace
from plimsoll.app.machine.clock import SystemClock
from plimsoll.kube.adoption import AdoptionParameter
from plimsoll.kube.leases import LeaseStore
from plimsoll.kube.session.session import connected
from plimsoll.ports.adoption import ParameterPort
from plimsoll.ports.clock import Clock
from plimsoll.ports.leases import LeasePort
from plimsoll.ports.writes import WriteOutcome

#: Seconds between two looks, the timeout of one, and the least time for which a Lease must be unchanged: one
#: that was released is valid for a second.
LOOK_S, REQUEST_S, LEAST_S = 5.0, 5.0, 15.0


def main(kubeconfig: Path | None, namespace: str, name: str, seconds: float) -> str:
    """Look for some seconds; returns what was done."""

    async def run() -> str:
        where = lease_namespace(namespace, kubeconfig)
        async with connected(kubeconfig) as session:
            leases = LeaseStore(session, where, name, REQUEST_S)
            return await watch(leases, AdoptionParameter(session, where), SystemClock(), seconds)

    return asyncio.run(run())


async def watch(leases: LeasePort, parameter: ParameterPort, clock: Clock, seconds: float) -> str:
    """Withdraw the parameter while the lease is stale; returns what was done, in a sentence."""
    end = clock.monotonic() + seconds
    seen: str | None = None  #: the version of the lease, "" without one
    since = clock.monotonic()
    said = "the lease was renewed"
    while clock.monotonic() < end:
        answer, lease = await leases.read()
        now = clock.monotonic()
        version = lease.version if lease is not None else ""
        if not answer.is_done or version != seen:
            seen, since = version if answer.is_done else None, now
        elif now - since >= max(LEAST_S, 0.0 if lease is None else lease.duration_s):
            withdrawn = await parameter.withdraw()
            if withdrawn.is_done:
                said = f"nobody leads: ConfigMap {parameter.namespace}/{PARAMETER} is deleted"
            elif withdrawn.verdict is WriteOutcome.GONE:
                said = said if "deleted" in said else "nobody leads, and no pod is adopted"
            else:
                said = f"nobody leads: ConfigMap {parameter.namespace}/{PARAMETER}: {withdrawn.message}"
        await clock.sleep(LOOK_S)
    return said
