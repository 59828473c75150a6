"""Finds the least that makes a seed fail: fewer kinds of faults, and a shorter time with them."""

from __future__ import annotations

from dataclasses import replace

from simulation.faults import FaultKind
from simulation.run import Plan, simulated


def minimal(plan: Plan) -> Plan:
    """A plan that fails, too, and none of whose kinds of faults can be left out alone.

    Leaving a kind out changes what is drawn later, so this is a search and not a proof.
    """
    kinds = set(plan.kinds if plan.kinds is not None else FaultKind)
    kinds &= set(simulated(plan).faults)
    smallest = replace(plan, kinds=frozenset(kinds))
    if not simulated(smallest).violations:
        return plan
    for kind in sorted(kinds):
        fewer = replace(smallest, kinds=frozenset(smallest.kinds or ()) - {kind})
        if simulated(fewer).violations:
            smallest = fewer
    for share in (0.5, 0.75):
        shorter = replace(smallest, faulty_s=smallest.faulty_s * share)
        if simulated(shorter).violations:
            return shorter
    return smallest
