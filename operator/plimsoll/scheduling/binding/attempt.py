"""Defines one attempt to bind a pod to the node that was chosen for it."""

from dataclasses import dataclass, field

from plimsoll.engine.profile import Profile
from plimsoll.framework import CycleState, PodInfo, PreBindPlugin
from plimsoll.ports.writes import WriteResult
from plimsoll.scheduling.binding.permits import HeldPod


@dataclass(slots=True)
class BindingAttempt:
    """One pod on its way to one node.

    Attributes:
        state: What the scheduling cycle's plugins wrote; the attempt's own.
        began: When the attempt began, in seconds that never go back.
        held: Set while plugins make it wait.
        works: PreBind plugins that have something to do.
        nominated: Whether the API server knows where the pod will go.
        answer: The API server's answer to the binding, None when none was sent.
    """

    pod: PodInfo
    node: str
    profile: Profile
    state: CycleState
    began: float = 0.0
    held: HeldPod | None = None
    works: list[PreBindPlugin] = field(default_factory=list)
    nominated: bool = False
    answer: WriteResult | None = None
