"""Counts our pods that a kubelet did not admit, by reason, and records an event on each.

A scheduler decides from what it has seen. If another scheduler, a static pod or a change of the node took the
room first, the kubelet decides: the pod fails before it starts, with a reason such as OutOfcpu, and its owner
creates a new one. Where two schedulers serve the same nodes, this is the price of scheduling without
coordination; the count shows how high it is.

Source: kubernetes v1.36, ``pkg/kubelet/lifecycle/predicate.go``, ``cm/topologymanager``, ``nodeshutdown``.
"""

from collections.abc import Callable

from plimsoll.cluster.watch_events import PodDeleted, PodUpdated, WatchEvent
from plimsoll.framework import Pod, PodInfo
from plimsoll.policy_controller.served_profiles import ServedProfiles
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import pod_reference
from plimsoll.scheduling.binding.pipeline import BindingHook

#: Prefix of reasons for which a kubelet lacks something: OutOfcpu, OutOfpods, OutOfexample.com/gpu.
OUT_OF = "OutOf"

#: The other reasons for which a kubelet does not admit a pod that was bound to it.
REASONS = frozenset(
    {
        "InitContainerRestartPolicyForbidden",
        "InsufficientResourceError",
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeShutdown",
        "NodeUnschedulable",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotAdmitted",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SMTAlignmentError",
        "SysctlForbidden",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnknownReason",
    }
)


class KubeletRejections(BindingHook):
    """Follows bound pods until their kubelets report.

    Args:
        counts: Whether a pod, by uid, is assumed or placed.
    """

    def __init__(
        self,
        served: ServedProfiles,
        recorder: EventRecorder,
        clock: Clock,
        observer: Observer,
        counts: Callable[[str], bool],
    ) -> None:
        self._served = served
        self._recorder = recorder
        self._clock = clock
        self._observer = observer
        self._counts = counts
        self._bound: dict[str, float] = {}  #: when we bound pods that have not started, in seconds, by uid

    def bound(self, pod: PodInfo) -> None:
        """Record a bound pod until its kubelet reports."""
        if self._counts(pod.uid):  # otherwise the watch has shown its deletion before the response arrived
            self._bound[pod.uid] = self._clock.monotonic()

    def observe(self, event: WatchEvent) -> None:
        """Handle a status that a kubelet may have written."""
        match event:
            case PodUpdated(old, pod) if pod.status.phase not in {"", "Pending"}:
                bound = self._bound.pop(pod.uid, None)
                if is_refused(pod) and not is_refused(old) and self._served.serves(pod):
                    self._tell(pod, bound)
            case PodDeleted(pod):
                self._bound.pop(pod.uid, None)

    def _tell(self, pod: Pod, bound: float | None) -> None:
        reason, name = pod.status.reason, pod.spec.scheduler_name
        after_s = None if bound is None else self._clock.monotonic() - bound
        # A pod is bound at most once, so its uid identifies the decision.
        self._observer.pod_refused(
            name, reason, pod=pod.key, node=pod.node_name, decision=pod.uid, after_s=after_s
        )
        self._recorder.record(
            EventNote(
                pod_reference(pod),
                "NotAdmitted",
                "Admitting",
                f"the kubelet of {pod.node_name} did not admit the pod: {reason}; what was decided on has"
                " changed meanwhile, maybe by another scheduler",
                is_warning=True,
                reporter=name,
            )
        )


def is_refused(pod: Pod) -> bool:
    """Whether a kubelet did not admit a pod."""
    status = pod.status
    return status.phase == "Failed" and (status.reason.startswith(OUT_OF) or status.reason in REASONS)
