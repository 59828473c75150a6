"""Judges pending pods whose scheduler name no scheduler serves, by the operator's rules, once."""

from collections.abc import Collection, Iterable, Iterator

from plimsoll.model.kinds.pod import Pod
from plimsoll.policies.scheduler_names import (
    DEFAULT_SCHEDULER,
    PATIENCE_S,
    Claims,
    is_served,
    may_wait,
    sentence,
)
from plimsoll.preflight.findings import Area, Certainty, Finding, Level, Unread, unchecked

#: Maximum number of pods that a sentence names.
NAMED = 3


def waiting_names(pods: Iterable[Pod], now: float) -> dict[str, list[Pod]]:
    """Pods pending for a minute or longer without a report of a scheduler, by scheduler name."""
    found: dict[str, list[Pod]] = {}
    served = {DEFAULT_SCHEDULER}
    for pod in pods:
        name, created = pod.spec.scheduler_name, pod.metadata.creation_timestamp
        if is_served(pod):
            served.add(name)
        if may_wait(pod) and (created is None or now - created.timestamp() >= PATIENCE_S):
            found.setdefault(name, []).append(pod)
    return {name: found[name] for name in sorted(found) if name not in served}


def judged_pods(
    waiting: dict[str, list[Pod]] | Unread, claimed: Claims, seen: Collection[str], *, leads: bool
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
    found = False
    for name, pods in waiting.items():
        policy, problem = claimed.get(name, ("", ""))
        if (policy and not problem and leads) or (not policy and name in seen):
            continue
        found = True
        yield _judged(name, pods, claimed)
    if not found:
        yield Finding(Area.PODS, Level.OK, "pods", "every pending pod names a scheduler that serves it")


def _judged(name: str, pods: list[Pod], claimed: Claims) -> Finding:
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
        f"{many} pod{'s' * (many > 1)} wait{'s' * (many == 1)} for a scheduler ({which}): {why}",
        remedy,
        Certainty.CERTAIN if policy else Certainty.LIKELY,
    )
