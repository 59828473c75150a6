"""Judges pending pods whose scheduler name no scheduler serves, by the operator's rules, once."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from plimsoll.model.counted import agreeing, counted
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER, Pod
from plimsoll.policies.scheduler_names import (
    PATIENCE_S,
    Claims,
    is_served,
    may_wait,
    sentence,
)
from plimsoll.preflight.findings import Area, Certainty, Finding, Level, Unread, unchecked

#: Maximum number of pods that a sentence names.
NAMED = 3


class UnreportedPods(Struct, frozen=True):
    """Pending pods without a report of a scheduler, by scheduler name.

    Attributes:
        names: Those that have been pending for a minute or longer.
        young: The number of younger ones, which cannot be judged yet.
    """

    names: Mapping[str, Sequence[Pod]]
    young: Mapping[str, int]


def waiting_names(pods: Iterable[Pod], now: float) -> UnreportedPods:
    """The pods whose scheduler was not seen to work."""
    found: dict[str, list[Pod]] = {}
    young: Counter[str] = Counter()
    served = {DEFAULT_SCHEDULER}
    for pod in pods:
        name, created = pod.spec.scheduler_name, pod.metadata.creation_timestamp
        if is_served(pod):
            served.add(name)
        if not may_wait(pod):
            continue
        if created is None or now - created.timestamp() >= PATIENCE_S:
            found.setdefault(name, []).append(pod)
        else:
            young[name] += 1
    return UnreportedPods(
        {name: found[name] for name in sorted(found) if name not in served},
        {name: count for name, count in young.items() if name not in served},
    )


def judged_pods(
    waiting: UnreportedPods | Unread, claimed: Claims, seen: Collection[str], *, leads: bool
) -> Iterator[Finding]:
    """Findings about pods that no scheduler seems to place.

    Args:
        waiting: The result of :func:`waiting_names`.
        claimed: For each scheduler name, the policy that has it, and why it does not serve it.
        seen: Scheduler names of pods that were placed.
        leads: Whether an operator leads and thus serves the policies.
    """
    if isinstance(waiting, Unread):
        yield unchecked(Area.PODS, "pods", waiting)
        return

    def is_well(name: str) -> bool:
        policy, problem = claimed.get(name, ("", ""))
        return bool(policy and not problem and leads) or (not policy and name in seen)

    wrong = [name for name in waiting.names if not is_well(name)]
    young = sum(count for name, count in waiting.young.items() if not is_well(name))
    for name in wrong:
        yield _judged(name, waiting.names[name], claimed)
    if young:
        are = agreeing(young, "is", "are")
        said = f"{counted(young, 'pod')} younger than {PATIENCE_S:.0f} s {are} not judged yet"
        yield Finding(Area.PODS, Level.OK, "pods", said, certainty=Certainty.OPEN)
    elif not wrong:
        yield Finding(Area.PODS, Level.OK, "pods", "every pending pod names a scheduler that serves it")


def _judged(name: str, pods: Sequence[Pod], claimed: Claims) -> Finding:
    many = len(pods)
    which = ", ".join(pod.key for pod in pods[:NAMED]) + (f" and {many - NAMED} more" if many > NAMED else "")
    policy, problem = claimed.get(name, ("", ""))
    why, remedy = sentence(name, claimed), "correct schedulerName, or write a SchedulingPolicy that serves it"
    if problem:
        remedy = f"correct policy {policy}"
    elif policy:
        why, remedy = f"policy {policy} serves it, and no operator leads", "let the operator run"
    return Finding(
        Area.PODS,
        Level.WARNING,
        f"schedulerName {name}",
        f"{counted(many, 'pod')} {agreeing(many, 'waits', 'wait')} for a scheduler ({which}): {why}",
        remedy,
        Certainty.CERTAIN if policy else Certainty.LIKELY,
    )
