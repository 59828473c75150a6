"""Planted bugs: variants of the operator, each with one slip, that the checker must find.

They keep the checker and the draws honest: ``make simulate ARGS=--planted`` looks for the first seed that
finds each, with whatever the seeds draw, and runs that seed without the slip, which must find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from plimsoll.app.operator import Operator
from simulation.faults import FaultKind
from simulation.faults import FaultKind as K
from simulation.planted import device_slips, election_slips, leftovers, move_slips, placement_slips
from simulation.run import Plan, simulated
from simulation.world.features import Feature

#: Seeds within which a planted bug must be found.
SEARCH = 200

Slip = Callable[[Operator], None]

#: In the order in which a process, a pod, then a move, meets them.
PLANTED: dict[str, Slip] = {
    slip.__name__: slip
    for slip in (
        election_slips.fence_without_end,
        election_slips.takes_the_lease_early,
        election_slips.believes_other_clocks,
        election_slips.overwrites_the_lease,
        election_slips.believes_refused_renewals,
        placement_slips.no_assume,
        placement_slips.believes_lost_bindings,
        placement_slips.believes_every_binding,
        placement_slips.binds_any_pod_of_the_name,
        placement_slips.terminating_is_gone,
        placement_slips.never_frees_room,
        placement_slips.tries_once,
        placement_slips.keeps_reservations,
        placement_slips.clears_nominations_late,
        placement_slips.never_lists_again,
        move_slips.keeps_no_records,
        move_slips.evicts_before_the_record,
        move_slips.settles_before_the_replacement,
        move_slips.never_closes_records,
        move_slips.evicts_any_pod_of_the_name,
        move_slips.deletes_instead_of_evicting,
        move_slips.believes_every_eviction,
        leftovers.leaves_a_task_behind,
        leftovers.looks_ready_with_a_dead_task,
        leftovers.queues_pods_that_are_gone,
        leftovers.remembers_explanations,
    )
}

#: Found in an ordinary world with these kinds of faults; those that seeds draw take many more seeds.
NARROW: dict[str, tuple[Slip, frozenset[FaultKind]]] = {
    slip.__name__: (slip, frozenset(kinds))
    for slip, kinds in (
        (
            placement_slips.forgets_lost_bindings,
            (
                K.LOST_RESPONSE,
                K.TIMEOUT_AFTER_EFFECT,
                K.BAD_GATEWAY,
                K.WATCH_LAG,
                K.WORKLOAD_SCALED,
                K.POD_DELETED,
            ),
        ),
        (
            placement_slips.gives_room_away_early,
            (K.TIMEOUT_BEFORE_EFFECT, K.RIGHTS_TAKEN, K.INVALID, K.POD_DELETED, K.NODE_FLAPPED),
        ),
        (
            move_slips.writes_any_version,
            (K.TIMEOUT_BEFORE_EFFECT, K.NODE_TAINTED, K.NODE_CORDONED, K.NODE_ADDED),
        ),
        (placement_slips.forgets_early, (K.WATCH_LAG, K.WORKLOAD_SCALED, K.POD_DELETED)),
        (
            election_slips.trusts_an_old_watch,
            (K.REPLICA_STOPPED, K.WATCH_LAG, K.WORKLOAD_SCALED, K.POD_DELETED),
        ),
        (
            election_slips.takes_over_nothing,
            (K.REPLICA_STOPPED, K.POD_DELETED, K.WORKLOAD_SCALED, K.WATCH_LAG),
        ),
        (
            move_slips.counts_each_run_alone,
            (K.NODE_TAINTED, K.NODE_CORDONED, K.NODE_ADDED, K.NODE_FLAPPED),
        ),
        (
            placement_slips.keeps_ghosts,
            (K.COMPACTION, K.WATCH_CUT, K.POD_DELETED, K.WORKLOAD_SCALED, K.API_RESTART),
        ),
    )
}

#: Found in worlds with this feature, with these kinds of faults or, with None, those that seeds draw.
FEATURED: dict[str, tuple[Slip, Feature, frozenset[FaultKind] | None]] = {
    slip.__name__: (slip, feature, kinds)
    for slip, feature, kinds in (
        (device_slips.looks_at_no_other_claim, Feature.DEVICES, None),
        (device_slips.never_gives_way, Feature.DEVICES, frozenset((K.AT_CLAIM_STATUS,))),
    )
}


@dataclass(frozen=True, slots=True)
class Find:
    """What the search for a planted bug has found.

    Attributes:
        seed: The first one that finds it; 0 for none.
        sentence: The first violation of that seed.
        without: The first violation of that seed without the bug, "" as it should be.
    """

    bug: str
    seed: int = 0
    sentence: str = ""
    without: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the bug, and nothing but the bug, was found."""
        return bool(self.seed) and not self.without

    def __str__(self) -> str:
        if not self.seed:
            return f"{self.bug:<34} NOT FOUND"
        without = f" (without it, too: {self.without})" if self.without else ""
        return f"{self.bug:<34} {self.seed:>4}  {self.sentence}{without}"


def planned(bug: str, seed: int) -> Plan:
    """The run in which a bug is looked for; those that need picked kinds of faults have these."""
    if bug in FEATURED:
        slip, feature, kinds = FEATURED[bug]
        return Plan(seed, features=(feature,), kinds=kinds, stops=True, mutate=slip)
    slip, kinds = NARROW[bug] if bug in NARROW else (PLANTED[bug], None)
    return Plan(seed, features=(), kinds=kinds, stops=True, mutate=slip)


def found(bug: str, seeds: Iterable[int] = range(1, SEARCH + 1)) -> Find:
    """Look for the first seed that finds a bug."""
    for seed in seeds:
        plan = planned(bug, seed)
        with_bug = simulated(plan)
        if with_bug.violations:
            without = simulated(replace(plan, mutate=lambda _: None)).violations
            gc.collect()
            return Find(bug, seed, with_bug.violations[0], without[0] if without else "")
        if seed % 16 == 0:
            gc.collect()
    return Find(bug)
