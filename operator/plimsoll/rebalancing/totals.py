"""Totals of the moves of a policy, from its records."""

from collections import Counter
from collections.abc import Iterable

from plimsoll.api.v1alpha1.eviction_phases import OPEN, Phase
from plimsoll.api.v1alpha1.scheduling_policy import MoveTotals
from plimsoll.rebalancing.moves.outcomes import PREEMPTION
from plimsoll.rebalancing.records.record import Record


def totals_of(records: Iterable[Record]) -> MoveTotals:
    """The totals of one policy's records; victims of preemption were not moved."""
    phases = Counter(record.phase for record in records if record.spec.strategy != PREEMPTION)
    return MoveTotals(
        moved=phases[Phase.SETTLED],
        returned=phases[Phase.RETURNED],
        failed=phases[Phase.FAILED],
        blocked=phases[Phase.BLOCKED],
        open=sum(phases[phase] for phase in OPEN),
        predicted=phases[Phase.PREDICTED],
    )
