"""Defines rules about PodDisruptionBudgets that allow nothing, protect nothing, or overlap."""

from collections.abc import Iterator

from plimsoll.inspection.lint.subjects import LintedBudget, LintedWorkload, Neighbourhood
from plimsoll.model.counted import counted
from plimsoll.model.kinds.workload import IntOrString

#: Maximum number of digits of a parsed amount.
LONGEST_AMOUNT = 10


def expected(budget: LintedBudget, around: Neighbourhood) -> int:
    """The number of pods that the budget covers."""
    return sum(each.replicas for each in around.workloads_in(budget.namespace) if budget.covers(each))


def allowed(budget: LintedBudget, pods: int) -> int | None:
    """How many of these pods may be unavailable if all are healthy; None if the budget does not define it.

    Source: Kubernetes v1.36, ``pkg/controller/disruption``; percentages are rounded up.
    """
    spec = budget.document.spec
    if spec.max_unavailable is not None:
        most = _amount(spec.max_unavailable, pods)
        return None if most is None else min(most, pods)
    if spec.min_available is not None:
        least = _amount(spec.min_available, pods)
        return None if least is None else max(pods - least, 0)
    return None


def _amount(value: IntOrString, pods: int) -> int | None:
    if isinstance(value, int):
        return value
    share = value.removesuffix("%")
    is_number = share.isascii() and share.isdigit() and len(share) <= LONGEST_AMOUNT
    return -(-int(share) * pods // 100) if is_number else None


def _limit(budget: LintedBudget) -> str:
    spec = budget.document.spec
    if spec.max_unavailable is not None:
        return f"maxUnavailable {spec.max_unavailable}"
    return f"minAvailable {spec.min_available}"


def blocks_everything(budget: LintedBudget, around: Neighbourhood) -> Iterator[str]:
    """The budget allows no eviction although all pods are healthy."""
    pods = expected(budget, around)
    if pods > 1 and allowed(budget, pods) == 0:
        yield f"{_limit(budget)} of {counted(pods, 'pod')} allows no eviction, even if all are healthy"


def blocks_the_only_pod(budget: LintedBudget, around: Neighbourhood) -> Iterator[str]:
    """The budget covers a single pod, which may never be unavailable."""
    if expected(budget, around) == 1 and allowed(budget, 1) == 0:
        yield f"{_limit(budget)} of the only pod allows no eviction; draining its node blocks for ever"


def protects_nothing(budget: LintedBudget, around: Neighbourhood) -> Iterator[str]:
    """The selector matches no pod."""
    if not expected(budget, around):
        yield "its selector matches no pod"


def overlapping(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """Several budgets cover the same pod, so the Eviction API never evicts it."""
    names = [each.name for each in around.covering(workload)]
    if len(names) > 1:
        listed = ", ".join(sorted(names))
        yield f"the budgets {listed} are about the same pods; the API server evicts none of them"
