"""Figures and sentences of a run that a policy's status and a plan have in common."""

from plimsoll.api.v1alpha1.rebalancing import ObjectiveName
from plimsoll.api.v1alpha1.scheduling_policy import OptimisationStatus
from plimsoll.framework import PluginError
from plimsoll.planning.moves import Optimisation


def sentence_of(failure: PluginError) -> str:
    """A sentence about a strategy's failure, and its cause."""
    return f"{failure.plugin} could not judge the cluster: {failure.problem}"


def optimisation_status(found: Optimisation | None) -> OptimisationStatus | None:
    """Figures for people: rounded."""
    if found is None:
        return None
    return OptimisationStatus(
        objective=ObjectiveName(found.objective),
        before=round(found.before, 2),
        value=round(found.value, 2),
        bound=round(found.bound, 2),
        proven=round(found.proven, 2),
        moves=found.moves,
        gap_percent=round(100 * found.gap, 1),
        seconds=round(found.seconds, 2),
        waiting=found.waiting,
        served=found.served,
    )
