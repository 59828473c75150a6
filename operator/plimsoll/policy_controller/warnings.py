"""Warning events of policies: one for each new reason for which a policy is degraded."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from plimsoll.api.schema.conditions import ACCEPTED, READY, Condition, ConditionStatus
from plimsoll.ports.events import EventNote

#: Conditions that are true when the policy works.
_GOOD, _TRUE = (ACCEPTED, READY), ConditionStatus.TRUE

#: Reasons whose events are recorded by the run that finds them.
_RECORDED_ELSEWHERE = frozenset({"StrategyFailed"})


class PolicyWarnings(Struct):
    """The events to record about one policy once its status is written."""

    _due: dict[str, str] = field(default_factory=dict)
    _reasons: frozenset[str] = frozenset()

    def update(self, notes: Mapping[str, str], before: Sequence[Condition]) -> None:
        """Compare the policy's current problems with its earlier conditions; new ones become due."""
        known = "; ".join(each.message for each in before if each.type not in _GOOD and each.status == _TRUE)
        self._due = {reason: notes[reason] for reason in self._due if reason in notes}
        self._due |= {
            reason: text
            for reason, text in notes.items()
            if reason not in self._reasons | _RECORDED_ELSEWHERE and text not in known
        }
        self._reasons = frozenset(notes)

    def due(self, policy: Mapping[str, Any]) -> Iterator[EventNote]:
        """The due events, each once; ``policy`` is the policy's document."""
        due, self._due = self._due, {}
        for reason, text in due.items():
            yield EventNote(policy_reference(policy), reason, "Degrading", text, is_warning=True)


def policy_reference(policy: Mapping[str, Any]) -> dict[str, str]:
    """A reference to a policy, for events."""
    meta = policy["metadata"]
    return {
        "apiVersion": str(policy.get("apiVersion", "plimsoll.dev/v1alpha1")),
        "kind": "SchedulingPolicy",
        "name": str(meta["name"]),
        "uid": str(meta.get("uid", "")),
    }
