"""DynamicResources: pods without resource claims pass; pods with claims are rejected with a message.

Formula: none for pods without ``spec.resourceClaims``: every node is feasible and scores 0. A pod with claims
is refused for all nodes with a sentence of its own, and no node is emptied for it.
Units: points, always 0.
Edges: as PostFilter it adds ``no new claims to deallocate`` to the message, and, when PreFilter was cut short
before its turn, ``not found``, which ends the phase before preemption.
Source: kube-scheduler v1.36, ``dynamicresources/dynamicresources.go``, its path without claims.
Differs: devices are not allocated (docs/adr/0007). Leave pods with claims to a scheduler that does.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from plimsoll import framework as fwk

NOT_SERVED = "resource claims are not served by this scheduler; remove spec.resourceClaims or use another"
STILL_NOT_SCHEDULABLE = "still not schedulable"
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"


class DynamicResourcesArgs(fwk.PluginArgs):
    """Arguments, as written under ``pluginConfig`` in a SchedulingPolicy; without effect here."""

    filter_timeout: str = Field(default="10s", description="How long the search for devices may take a node.")
    binding_timeout: str = Field(default="600s", description="How long binding waits for devices.")


@dataclass(frozen=True, slots=True)
class _Asked:
    """Marks that PreFilter ran."""


class DynamicResources(
    fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PostFilterPlugin, fwk.NormalizingPlugin, fwk.EnqueueExtensions
):
    """Lets pods without claims pass, and rejects the others with a message."""

    name: ClassVar = "DynamicResources"
    args_model: ClassVar = DynamicResourcesArgs
    reads: ClassVar = fwk.Reads.NODE
    framed: ClassVar = True
    notes_skips: ClassVar = True

    def __init__(self, args: DynamicResourcesArgs) -> None:
        """Take arguments that upstream's plugin takes."""

    def pre_filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.Status:
        """Skip pods without claims, refuse the others."""
        state.write(_Asked())
        return fwk.unresolvable(NOT_SERVED) if pod.pod.spec.resource_claims else fwk.SKIP

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Every node; only reached without claims."""
        return fwk.all_feasible(snapshot)

    def signature(self, template: fwk.PodTemplate) -> Hashable:
        """Nothing: no node is refused or preferred."""
        return ()

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """No node is refused by itself."""
        return fwk.unresolvable(NOT_SERVED)

    def post_filter(
        self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot, rejections: fwk.Rejections
    ) -> fwk.Nomination:
        """Nothing to give back; leave the rest to preemption."""
        if rejections.absent.plugin == self.name:
            return fwk.Nomination(fwk.unschedulable(STILL_NOT_SCHEDULABLE))
        if state.find(_Asked) is None:
            return fwk.Nomination(fwk.error("not found"))
        return fwk.Nomination(fwk.unschedulable(NOTHING_TO_DEALLOCATE))

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """0 a node, shape (N,)."""
        return fwk.all_feasible(snapshot)

    def normalize(self, state: fwk.CycleState, pod: fwk.PodInfo, scores: fwk.IntArray) -> fwk.IntArray:
        """0 stays 0, shape (F,)."""
        return scores

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """Nothing makes it serve a pod that it refused."""
        return ()
