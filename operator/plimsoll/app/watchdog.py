"""The dead man's switch of adoption: withdraws policies that adopt pods when no operator leads.

It compares no clocks: a Lease is stale once it was seen unchanged for the time that it is valid, as other
candidates judge it. A request without an answer says nothing about the leader. A policy whose condition
Ready is false adopts no pods (:mod:`plimsoll.adoption.admission_objects`); a leader writes its own conditions
again.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.api.schema.conditions import READY, ConditionStatus, condition, with_condition
from plimsoll.app.candidacy import lease_namespace
from plimsoll.app.machine.clock import SystemClock
from plimsoll.kube.custom_resources import PolicyResources
from plimsoll.kube.leases import LeaseStore
from plimsoll.kube.session.session import connected
from plimsoll.policies.conditions import WITHDRAWN, written_conditions
from plimsoll.policies.operators import operator_of
from plimsoll.ports.clock import Clock
from plimsoll.ports.leases import LeasePort

#: Seconds between two looks, the timeout of one, and the least time for which a Lease must be unchanged: one
#: that was released is valid for a second.
LOOK_S, REQUEST_S, LEAST_S = 5.0, 5.0, 15.0

MESSAGE = "no operator leads: no process has renewed its lease; new pods are not adopted"


def main(kubeconfig: Path | None, namespace: str, name: str, seconds: float, operator: str = "") -> str:
    """Look for some seconds; returns what was done."""

    async def run() -> str:
        async with connected(kubeconfig) as session:
            leases = LeaseStore(session, lease_namespace(namespace, kubeconfig), name, REQUEST_S)
            return await watch(leases, PolicyResources(session), SystemClock(), seconds, operator)

    return asyncio.run(run())


async def watch(
    leases: LeasePort, policies: PolicyResources, clock: Clock, seconds: float, operator: str = ""
) -> str:
    """Withdraw the operator's policies while its lease is stale; returns what was done, in a sentence."""
    end, since = clock.monotonic() + seconds, clock.monotonic()
    seen: str | None = None  #: the version of the lease, "" without one
    withdrawn: set[str] = set()
    is_stale = False
    while clock.monotonic() < end:
        answer, lease = await leases.read()
        now, version = clock.monotonic(), "" if lease is None else lease.version
        if not answer.is_done or version != seen:
            seen, since, is_stale = version if answer.is_done else None, now, False
        elif now - since >= max(LEAST_S, 0.0 if lease is None else lease.duration_s):
            is_stale = True
            withdrawn |= await _withdraw(policies, clock, operator)
        await clock.sleep(LOOK_S)
    if withdrawn:
        return f"no operator leads: {', '.join(sorted(withdrawn))} adopts no more pods"
    return "no operator leads, and no policy adopts pods" if is_stale else "an operator leads"


async def _withdraw(policies: PolicyResources, clock: Clock, operator: str) -> set[str]:
    """Withdraw the policies of an operator that adopt pods; returns their names."""
    _, documents = await policies.list()
    done = set()
    for document in documents:
        name, found = str(document["metadata"]["name"]), written_conditions(document)
        ready = condition(found, READY)
        if operator_of(document["metadata"].get("labels")) != operator or not _adopts(document):
            continue
        if ready is None or ready.status is not ConditionStatus.TRUE:
            continue
        conditions = with_condition(
            found,
            READY,
            ConditionStatus.FALSE,
            reason=WITHDRAWN,
            message=MESSAGE,
            now=datetime.fromtimestamp(clock.now(), UTC),
            generation=ready.observed_generation,
        )
        status = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in conditions]
        version = str(document["metadata"].get("resourceVersion", ""))
        written = await policies.write_status(name, {"conditions": status}, version=version)
        done |= {name} if written.is_done else set()  # a change in between is seen at the next look
    return done


def _adopts(document: Mapping[str, Any]) -> bool:
    """Whether a policy adopts pods; one that is malformed does so, too, if admission finds the field."""
    spec = document.get("spec")
    scheduling = spec.get("scheduling") if isinstance(spec, Mapping) else None
    return isinstance(scheduling, Mapping) and "adopt" in scheduling
