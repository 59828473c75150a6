"""Rules about PodDisruptionBudgets: those that allow nothing, protect nothing, or overlap."""

from collections.abc import Iterator

from plimsoll.inspection.lint.subjects import LintedBudget, LintedWorkload, Neighbourhood
from plimsoll.model.kinds.workload import IntOrString

#: Digits of an amount that is read.
LONGEST_AMOUNT = 10


def expected(budget: LintedBudget, around: Neighbourhood) -> int:
    """How many pods it is about."""
    return sum(each.replicas for each in around.workloads_in(budget.namespace) if budget.covers(each))


def allowed(budget: LintedBudget, pods: int) -> int | None:
    """How many of these pods may be away when all are healthy; None when the budget does not say.

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
    """No eviction is possible though all pods are healthy."""
    pods = expected(budget, around)
    if pods > 1 and allowed(budget, pods) == 0:
        yield f"{_limit(budget)} of {pods} pods allows no eviction, even if all are healthy"


def blocks_the_only_pod(budget: LintedBudget, around: Neighbourhood) -> Iterator[str]:
    """A budget over one pod that may not be away."""
    if expected(budget, around) == 1 and allowed(budget, 1) == 0:
        yield f"{_limit(budget)} of the only pod allows no eviction; draining its node blocks for ever"


def protects_nothing(budget: LintedBudget, around: Neighbourhood) -> Iterator[str]:
    """A selector that no pod matches."""
    if not expected(budget, around):
        yield "its selector matches no pod"


def overlapping(workload: LintedWorkload, around: Neighbourhood) -> Iterator[str]:
    """Several budgets over one pod: the Eviction API then evicts it never."""
    names = [each.name for each in around.covering(workload)]
    if len(names) > 1:
        listed = ", ".join(sorted(names))
        yield f"the budgets {listed} are about the same pods; the API server evicts none of them"
