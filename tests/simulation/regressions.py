"""Regressions are runs that once broke a promise; each must end well ever after.

``make simulate`` runs them before seed 1. A plan means the run in which the fault was found as long as the
same things are drawn; the plain unit tests that came with each fix hold it in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from simulation.run import FAULTY_S, Plan, simulated
from simulation.wire.faults import KINDS
from simulation.world.features import Feature


@dataclass(frozen=True, slots=True)
class Regression:
    """One of them; :func:`simulation.minimal_plan.entry` writes it.

    Attributes:
        commit: That mended it.
        sentence: What was violated.
        kinds: Names of kinds of faults; None draws them.
        features: Names of features of the world; None draws them.
    """

    seed: int
    commit: str
    sentence: str
    kinds: Collection[str] | None = None
    features: Collection[str] | None = None
    left_out: Collection[str] = ()
    faults: Collection[int] | None = None
    faulty_s: float = FAULTY_S
    is_wired: bool = False

    @property
    def plan(self) -> Plan:
        """What to simulate."""
        return Plan(
            self.seed,
            faulty_s=self.faulty_s,
            kinds=None if self.kinds is None else frozenset(KINDS[name] for name in self.kinds),
            features=None if self.features is None else frozenset(Feature[name] for name in self.features),
            left_out=frozenset(self.left_out),
            faults=None if self.faults is None else frozenset(self.faults),
            is_wired=self.is_wired,
        )


#: In the order in which they were found.
REGRESSIONS: tuple[Regression, ...] = (
    Regression(47, "98f41563", "a replacement was ready, and the record ended as Failed", features=()),
    Regression(59, "df1b61cf", "a policy that was made again never got a status", features=()),
    Regression(11, "1be438d8", "a move whose record was deleted was remembered for ever", features=()),
    Regression(12, "7daee394", "a victim of two preemptors was evicted with two records"),
    Regression(16, "7daee394", "a victim of two preemptors was evicted with two records"),
    Regression(333, "d8db050b", "a new leader over-committed a node: it overlooked bindings of the last one"),
    Regression(577, "420bd3ca", "11 evictions for tidy, perMinute is 10", features=()),
    Regression(388, "1ed19c21", "a pod is on a node, its PodScheduled is False"),
    Regression(788, "1ed19c21", "a gang's member is still nominated to a node which no victim leaves"),
    Regression(
        648,
        "c270dcfc",
        "the status of a policy that was not accepted did not count a proposal",
        features=("PLANS",),
    ),
    Regression(452, "2f424e68", "a policy's totals counted a record that was deleted with its definition"),
    Regression(615, "2f424e68", "a policy's totals counted records that no watch had ever shown"),
    Regression(930, "6b3fa712", "a part of a gang was bound by a request of a process that had ended"),
    Regression(3013, "3c463570", "an outdated prediction was remembered without its record"),
    Regression(5028, "f37dddd1", "a pod was evicted while its binding was on its way"),
    Regression(5127, "89c35ef6", "a new leader over-committed nodes that had shrunk while it stood by"),
    Regression(391, "89c35ef6", "pods were bound to a node that refused them, and made again, without end"),
    Regression(10020, "2f424e68", "moves were remembered whose records had gone with their definition"),
    Regression(
        16,
        "8c9a4a1f",
        "a pod of a scale-up was taken for the replacement, which was overlooked",
        kinds=("MOVE_MEDDLED", "MOVE_ANSWER_LATE"),
        features=("SURGES", "SLOW_STARTS"),
        faulty_s=240.0,
    ),
    Regression(119, "8c9a4a1f", "a new leader overlooked records that the deposed one made a moment later"),
    Regression(
        41,
        "8c9a4a1f",
        "the totals of a policy that rebalanced no longer counted moves that were called off",
        kinds=("MOVE_MEDDLED", "MOVE_ANSWER_LATE"),
        features=("BUNDLES",),
    ),
    Regression(534, "ba51c5df", "a pod was bound though its claim was not reserved for it any more"),
    Regression(1458, "ba51c5df", "a new leader bound a part of a gang by an outdated PodGroup"),
    Regression(944, "ba51c5df", "records whose status was refused for a while never got their last phase"),
    Regression(1116, "ba51c5df", "the victim of a preemptor that was gone was remembered"),
    Regression(3691, "ba51c5df", "a candidate led while a leader did whose lease somebody had emptied"),
    Regression(4901, "ba51c5df", "a candidate led while a leader did from whom somebody had taken the lease"),
    Regression(1506, "8a0d3d4e", "a replica led whose lists began before the lease of another was made"),
    Regression(2192, "571a2dfd", "a move failed whose pod had been passed over for another move's"),
    Regression(9997, "a242263f", "a pod was nominated for ever after its policy had stopped preempting"),
    Regression(50, "55a652df", "a pod was evicted that had lost its owner 35 s before", is_wired=True),
    Regression(
        268, "532c5c4d", "pods that were gone were remembered: a watch lagged for minutes", is_wired=True
    ),
    Regression(283, "532c5c4d", "a replica's first list of pods lagged for minutes", is_wired=True),
    Regression(
        88, "83c97e61", "a policy's totals left out a record made again under its name", is_wired=True
    ),
    Regression(
        234, "8c9a4a1f", "pods of a gang got no condition: the right to write it was missing for a while"
    ),
    Regression(285, "a70adbd3", "victims of preemption were judged by the state in which they were bound"),
    Regression(289, "1295b094", "a record of a replica whose clock was hours ahead was never read again"),
)


def broken() -> Iterator[tuple[Regression, str]]:
    """Those that fail again, and how."""
    for regression in REGRESSIONS:
        violations = simulated(regression.plan).violations
        if violations:
            yield regression, violations[0]
