"""RULES is the table of all rules; ``lint`` applies them and returns the findings."""

from collections.abc import Callable, Collection, Iterable

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.inspection.lint import budgets, mobility, needs, placement, signals
from plimsoll.inspection.lint.rule import LintRule, Severity
from plimsoll.inspection.lint.subjects import (
    CLAIMS,
    CLASSES,
    NODES,
    PODS,
    POLICIES,
    LintedBudget,
    LintedObject,
    LintedWorkload,
    Neighbourhood,
)

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

WORKLOAD_RULES: tuple[LintRule[LintedWorkload], ...] = (
    LintRule(
        "no-requests",
        _WARNING,
        "Containers request no cpu or no memory.",
        "Set resources.requests: the scheduler counts requests, and utilisation strategies compare them.",
        needs.no_requests,
    ),
    LintRule(
        "request-too-large",
        _ERROR,
        "No node is large enough, even if empty.",
        "Request less, or add a larger node.",
        needs.too_large,
        (NODES,),
    ),
    LintRule(
        "node-affinity-unmatched",
        _ERROR,
        "No node matches the node selector and the required node affinity.",
        "Label a node, or change nodeSelector and nodeAffinity.",
        placement.no_node_matches,
        (NODES,),
    ),
    LintRule(
        "node-affinity-contradictory",
        _ERROR,
        "The node selector and the required node affinity exclude each other.",
        "Remove one of the requirements on the label.",
        placement.contradictory_affinity,
    ),
    LintRule(
        "anti-affinity-too-few-domains",
        _ERROR,
        "Pods exclude each other, and there are more of them than domains.",
        "Scale down, add domains, or make the anti-affinity preferred.",
        placement.too_few_domains,
        (NODES,),
    ),
    LintRule(
        "affinity-to-no-pod",
        _ERROR,
        "The required pod affinity is to pods that do not exist.",
        "Correct the labelSelector, or create these pods first.",
        placement.affinity_to_no_pod,
        (PODS,),
    ),
    LintRule(
        "topology-key-unknown",
        _ERROR,
        "A hard constraint is by a label that no node has.",
        "Correct the topologyKey, or label the nodes.",
        placement.unknown_topology,
        (NODES,),
    ),
    LintRule(
        "spread-impossible",
        _ERROR,
        "A hard spread constraint needs more domains than there are.",
        "Lower minDomains, raise maxSkew, or add domains.",
        placement.impossible_spread,
        (NODES,),
    ),
    LintRule(
        "spread-over-others",
        _WARNING,
        "A spread constraint does not count the workload's own pods.",
        "Let its labelSelector match labels of the pod template.",
        placement.spread_over_others,
    ),
    LintRule(
        "scheduler-not-served",
        _ERROR,
        "Nothing schedules pods with this schedulerName.",
        "Correct the name, or apply a SchedulingPolicy with it.",
        placement.unserved_scheduler,
        (POLICIES,),
    ),
    LintRule(
        "priority-class-missing",
        _ERROR,
        "The priority class does not exist.",
        "Create the PriorityClass, or correct priorityClassName.",
        needs.unknown_class,
        (CLASSES,),
    ),
    LintRule(
        "claim-missing",
        _ERROR,
        "A volume is of a claim that does not exist.",
        "Create the PersistentVolumeClaim, or correct claimName.",
        needs.missing_claims,
        (CLAIMS,),
    ),
    LintRule(
        "claim-unbound",
        _WARNING,
        "A claim has no volume.",
        "kubectl describe pvc says why; check its StorageClass and its provisioner.",
        needs.unbound_claims,
        (CLAIMS,),
    ),
    LintRule(
        "host-port-crowded",
        _ERROR,
        "More pods want a host port than nodes may take them.",
        "Scale down, or use a Service instead of a host port.",
        placement.crowded_host_ports,
        (NODES,),
    ),
    LintRule(
        "budgets-overlap",
        _ERROR,
        "Several budgets are about the same pods.",
        "Keep one PodDisruptionBudget for each pod.",
        budgets.overlapping,
    ),
    LintRule(
        "bare-pod",
        _WARNING,
        "A pod has no owner.",
        "Let a Deployment or a Job make it.",
        mobility.bare_pod,
    ),
    LintRule(
        "long-grace-period",
        _WARNING,
        "Pods may take more than an hour to end.",
        "Lower terminationGracePeriodSeconds, or exclude the pods from moves.",
        mobility.long_grace,
    ),
    LintRule(
        "local-storage",
        _INFO,
        "Volumes on the node keep pods from being moved.",
        "Where their content may be lost, disable the evictor's protection PodsWithLocalStorage.",
        mobility.local_storage,
    ),
    LintRule(
        "single-replica",
        _INFO,
        "A workload has one pod.",
        "Run two, or allow moves of it with evictor.minReplicas 1 or surge.",
        mobility.single_replica,
    ),
    LintRule(
        "toleration-unused",
        _INFO,
        "A toleration is of a taint that no node has.",
        "Remove the toleration, or correct its key and value.",
        placement.idle_tolerations,
        (NODES,),
    ),
)

BUDGET_RULES: tuple[LintRule[LintedBudget], ...] = (
    LintRule(
        "budget-blocks-all",
        _ERROR,
        "A budget allows no eviction, even if all pods are healthy.",
        "Use maxUnavailable 1, or a minAvailable below the number of pods.",
        budgets.blocks_everything,
    ),
    LintRule(
        "budget-blocks-only-pod",
        _WARNING,
        "A budget forbids evicting the only pod.",
        "Run two pods, or remove the budget; surge moves a single replica without a gap.",
        budgets.blocks_the_only_pod,
    ),
    LintRule(
        "budget-matches-nothing",
        _WARNING,
        "A budget protects no pod.",
        "Correct its selector, or remove it.",
        budgets.protects_nothing,
        (PODS,),
    ),
)

OBJECT_RULES: tuple[LintRule[LintedObject], ...] = (
    LintRule(
        "signal-unreadable",
        _WARNING,
        "An annotation or label that steers disruption has a value that cannot be read.",
        "Write one of the values that docs/reference/signals.md lists, or remove it.",
        signals.unreadable,
    ),
    LintRule(
        "key-unknown",
        _WARNING,
        "A key below plimsoll.dev/ has no meaning.",
        "Correct it: docs/reference/keys.md has all keys.",
        signals.unknown_key,
    ),
)

RULES: tuple[LintRule[LintedWorkload] | LintRule[LintedBudget] | LintRule[LintedObject], ...] = (
    *WORKLOAD_RULES,
    *BUDGET_RULES,
    *OBJECT_RULES,
)


class LintFinding(AnswerPart):
    """One finding."""

    rule: str = Field(description="Id of the rule, and its anchor in docs/cli/lint.md.")
    severity: Severity = Field(description="error, warning or info.")
    kind: str = Field(description="Kind of the workload or object.")
    namespace: str = Field(description="Namespace of it.")
    name: str = Field(description="Name of it.")
    source: str | None = Field(default=None, description="The file; left out for one of the cluster.")
    message: str = Field(description="What was found.")
    remedy: str = Field(description="What to do.")


class UncheckedRule(AnswerPart):
    """A rule that was not applied."""

    rule: str = Field(description="Id of the rule.")
    why: str = Field(description="What is not known, and why.")


class Lint(Answer):
    """The findings of plimsoll lint."""

    workloads: int = Field(description="Workloads that were looked at.")
    budgets: int = Field(description="Budgets that were looked at.")
    findings: tuple[LintFinding, ...] = Field(description="The findings, the worst first.")
    unchecked: tuple[UncheckedRule, ...] = Field(
        default=(), description="Rules that were not applied, as what they need is not known."
    )


def lint(
    around: Neighbourhood,
    rules: Collection[str],
    concerns: Callable[[LintedWorkload | LintedBudget | LintedObject], bool] = lambda subject: True,  # noqa: ARG005 - all
) -> Lint:
    """Apply rules.

    Args:
        around: The surroundings of the subjects.
        rules: Ids of the rules to apply.
        concerns: Whether to judge a workload, a budget or metadata; all serve as neighbours.
    """
    workloads = [each for each in around.workloads if concerns(each)]
    guards = [each for each in around.budgets if concerns(each)]
    findings: list[LintFinding] = []
    unchecked = []
    for rule in RULES:
        if rule.id not in rules:
            continue
        unknown = next((name for name in rule.needs if name in around.unknown), None)
        if unknown is not None:
            unchecked.append(
                UncheckedRule(rule=rule.id, why=f"{unknown} are not known: {around.unknown[unknown]}")
            )
    skipped = {each.rule for each in unchecked}
    for rule in WORKLOAD_RULES:
        if rule.id in rules and rule.id not in skipped:
            findings += _found(rule, workloads, around)
    for guard in BUDGET_RULES:
        if guard.id in rules and guard.id not in skipped:
            findings += _found(guard, guards, around)
    bearers = [each for each in around.objects if concerns(each)]
    for about in OBJECT_RULES:
        if about.id in rules:
            findings += _found(about, bearers, around)
    findings.sort(key=lambda each: (-each.severity.rank, each.namespace, each.kind, each.name, each.rule))
    return Lint(
        workloads=len(workloads), budgets=len(guards), findings=tuple(findings), unchecked=tuple(unchecked)
    )


def _found(
    rule: LintRule[LintedWorkload] | LintRule[LintedBudget] | LintRule[LintedObject],
    subjects: Iterable[LintedWorkload | LintedBudget | LintedObject],
    around: Neighbourhood,
) -> list[LintFinding]:
    return [
        LintFinding(
            rule=rule.id,
            severity=rule.severity,
            kind=each.kind,
            namespace=each.namespace,
            name=each.name,
            source=each.source or None,
            message=message,
            remedy=rule.remedy,
        )
        for each in subjects
        for message in rule.check(each, around)  # type: ignore[arg-type] # the subjects are the rule's
    ]
