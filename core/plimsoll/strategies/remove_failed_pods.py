"""RemoveFailedPods: evict failed pods after a minimum age.

Formula::

    candidate = phase is Failed and age >= minPodLifetimeSeconds and no owner of an excluded kind
                and one of reasons and one of exitCodes, if given

Units: seconds since the creation of the pod.
Edges: ``minPodLifetimeSeconds`` defaults to an hour; upstream treats a creation in the future as long past
(unsigned seconds).
Source: descheduler v0.36, ``removefailedpods``.
Differs: under the Proven planner a pod created in the future is young.
"""

from typing import Annotated, ClassVar

from pydantic import Field, StrictBool, StrictInt, StrictStr

from plimsoll.framework import Pod, PodInfo
from plimsoll.framework.descheduling import Strategy, StrategyContext, StrategyKind
from plimsoll.framework.descheduling.proposals import Candidate, Candidates, until_closed
from plimsoll.toolkit.descheduling.container_states import (
    age_s,
    exit_codes,
    statuses_of,
    terminated_reasons,
    waiting_reasons,
)
from plimsoll.toolkit.descheduling.pod_scope import ScopedArgs

ExitCode = Annotated[StrictInt, Field(ge=-(2**31), lt=2**31)]


class RemoveFailedPodsArgs(ScopedArgs):
    """Arguments, as in descheduler v1alpha2."""

    exclude_owner_kinds: tuple[StrictStr, ...] = Field(
        default=(), description="Pods with an owner of one of these kinds are left alone."
    )
    min_pod_lifetime_seconds: StrictInt | None = Field(
        default=None, ge=0, description="Seconds of age; 3600 when left out."
    )
    reasons: tuple[StrictStr, ...] = Field(
        default=(), description="Only pods that failed for one of these reasons; none means any."
    )
    exit_codes: tuple[ExitCode, ...] = Field(
        default=(), description="Only pods with a container that ended with one of these; none means any."
    )
    including_init_containers: StrictBool = Field(
        default=False, description="Whether reasons and exit codes of init containers count too."
    )


class RemoveFailedPods(Strategy):
    """Evict pods that have failed."""

    name: ClassVar = "RemoveFailedPods"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = RemoveFailedPodsArgs
    renews: ClassVar = True

    def __init__(self, args: RemoveFailedPodsArgs) -> None:
        self.args = args
        given = args.min_pod_lifetime_seconds
        self._least_s = 3600 if given is None else given

    def candidates(self, context: StrategyContext) -> Candidates:
        """Node by node."""
        for name in context.nodes:
            found = []
            for pod in context.all_pods(name, self._has_failed):
                if not (self.args.covers(pod) and self._is_due(pod.pod, context)):
                    continue
                reason = f"it failed{_why(pod.pod)}"
                if context.may_go(pod, reason):
                    found.append(Candidate(pod, name, reason))
            yield from until_closed(found)

    @staticmethod
    def _has_failed(pod: PodInfo) -> bool:
        return pod.pod.status.phase == "Failed"

    def _is_due(self, pod: Pod, context: StrategyContext) -> bool:
        args = self.args
        age = age_s(pod.metadata.creation_timestamp, context.now)
        if age < self._least_s and not (context.is_exact and age < 0):
            return False
        if any(owner.kind in args.exclude_owner_kinds for owner in pod.metadata.owner_references):
            return False
        statuses = list(statuses_of(pod, init=args.including_init_containers))
        reasons = {pod.status.reason, *waiting_reasons(statuses), *terminated_reasons(statuses)}
        if args.reasons and (reasons - {""}).isdisjoint(args.reasons):
            return False
        return not args.exit_codes or not set(exit_codes(statuses)).isdisjoint(args.exit_codes)


def _why(pod: Pod) -> str:
    reasons = [pod.status.reason, *terminated_reasons(statuses_of(pod, init=True))]
    first = next((reason for reason in reasons if reason), "")
    return f": {first}" if first else ""
