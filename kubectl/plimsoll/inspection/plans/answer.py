"""Answer of the command plan: the moves of each policy, its refusals, and their effect."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.api.v1alpha1.eviction import Purpose
from plimsoll.api.v1alpha1.rebalancing import Mode, PlannerName
from plimsoll.api.v1alpha1.scheduling_policy import OptimisationStatus


class Departure(StrEnum):
    """The way in which a pod leaves its node."""

    EVICTION = "Eviction"
    SURGE = "Surge"


class PlannedMove(AnswerPart):
    """One moved pod, and the expected node of its replacement."""

    position: int = Field(
        ge=1, description="Place of the move among the policy's moves, in the order of execution."
    )
    pod: str = Field(description="The pod, as namespace/name.")
    workload: str = Field(description="Owner of the pod, as Kind namespace/name.")
    source_node: str = Field(description="Node that the pod runs on.")
    target_node: str | None = Field(
        description="Node that the replacement is expected on; null when none is needed or none is known."
    )
    strategy: str = Field(description="Strategy that proposes it.")
    reason: str = Field(description="Why the pod is moved, in a sentence.")
    gain: int | None = Field(
        description="Points by which the target's score beats that of the present node; null when that node "
        "is not feasible any more, or nothing was scored."
    )
    gain_maximum: int | None = Field(description="Points that a node can score at most.")
    ties: int = Field(ge=0, description="Nodes that score as well as the target, itself included.")
    forecast: bool = Field(description="Whether nothing vouches for the target.")
    directed: bool = Field(description="Whether the replacement is sent to the target, whatever its score.")
    purpose: Purpose = Field(description="Move wants another node; Restart wants a fresh pod, on any node.")
    leaves_by: Departure = Field(description="How the pod is made to leave.")
    no_surge: str | None = Field(
        default=None, description="Why it is evicted though the policy asks for surges; null if it does not."
    )
    budget: str | None = Field(description="The PodDisruptionBudget that covers it, as namespace/name.")
    bundle: str | None = Field(description="Moves that are made all or none have this name in common.")
    beneficiary: str | None = Field(description="The pending pod that the bundle makes room for.")


class RefusedSubject(AnswerPart):
    """The pods of one workload that stay for one reason."""

    subject: str = Field(description="The workload, as Kind namespace/name.")
    pods: int = Field(ge=1, description="How many of its pods stay for this reason.")
    strategies: tuple[str, ...] = Field(description="Strategies that want them moved.")
    message: str = Field(description="Why the first of them stays, in a sentence.")
    examples: tuple[str, ...] = Field(description="Some of them, as namespace/name; at most five.")


class RefusalSummary(AnswerPart):
    """Pods that strategies propose and that stay, for one reason."""

    reason: str = Field(description="Why, in one word.")
    meaning: str = Field(description="What the reason means, whatever the case.")
    remedy: str = Field(description="What to do about it; empty if nothing is to be done.")
    pods: int = Field(ge=1, description="How many pods; each counts once, whichever strategies want it.")
    message: str = Field(description="Why the first of them stays, in a sentence.")
    subjects: tuple[RefusedSubject, ...] = Field(
        description="Workloads whose pods stay for this reason, those with the most pods first."
    )


class UsageChange(AnswerPart):
    """Usage of a node's resource, before and after."""

    resource: str = Field(description="cpu, memory or pods.")
    usage: str = Field(description="requests, or actual where the policy has it measured.")
    before_percent: float = Field(description="Share of the node's allocatable amount, before the moves.")
    after_percent: float = Field(description="Share of the node's allocatable amount, after the moves.")


class NodeChange(AnswerPart):
    """A node that pods leave or enter."""

    node: str = Field(description="Node that pods leave or enter.")
    leave: int = Field(ge=0, description="Pods that leave it.")
    arrive: int = Field(ge=0, description="Replacements that are expected on it.")
    changes: tuple[UsageChange, ...] = Field(
        description="Utilisation of the node by resource and usage, before and after."
    )


class SpreadChange(AnswerPart):
    """Imbalance of the nodes in scope."""

    resource: str = Field(description="cpu, memory or pods.")
    usage: str = Field(description="requests, or actual where the policy has it measured.")
    before: float = Field(ge=0, description="Standard deviation over the nodes, in percentage points.")
    after: float = Field(
        ge=0, description="Standard deviation over the nodes after the moves, in percentage points."
    )


class LimitAllowance(AnswerPart):
    """A limit of the policy, and what the plan leaves of it."""

    limit: str = Field(description="The field of spec.rebalancing.limits.")
    subject: str | None = Field(
        description="What it limits: a node, a namespace, a workload or a budget; null for the whole run."
    )
    allowed: int = Field(ge=0, description="Evictions that it allows.")
    used: int = Field(ge=0, description="Evictions of the plan, and those of earlier runs that count.")
    left: int = Field(ge=0, description="What is left of it.")


class BudgetAllowance(AnswerPart):
    """A PodDisruptionBudget that covers a pod of the plan, and its remaining disruptions."""

    budget: str = Field(description="The budget, as namespace/name.")
    allowed: int = Field(ge=0, description="Disruptions that it allows now.")
    used: int = Field(ge=0, description="Disruptions that the plan takes.")
    left: int = Field(ge=0, description="What is left of it.")
    refused: int = Field(ge=0, description="Pods that stay because of it.")


class PolicyPlan(AnswerPart):
    """The plan of one policy."""

    policy: str = Field(description="Name of the SchedulingPolicy.")
    planned: bool = Field(default=False, description="Whether a plan was made; if not, the outlook says why.")
    mode: Mode | None = Field(default=None, description="Mode of the policy.")
    planner: PlannerName | None = Field(default=None, description="Planner that decides which pods move.")
    schedule: str | None = Field(default=None, description="When the policy runs, in words.")
    next_run: datetime | None = Field(default=None, description="When it runs next, where that is known.")
    outlook: str = Field(description="What the operator would do with the plan, and when.")
    notes: tuple[str, ...] = Field(
        default=(), description="What the plan could not know, and what strategies have to say."
    )
    considered: int = Field(default=0, ge=0, description="Pods that strategies want moved.")
    moves: tuple[PlannedMove, ...] = Field(
        default=(), description="The planned moves, in the order of execution."
    )
    refused: tuple[RefusalSummary, ...] = Field(
        default=(), description="Pods that stay, by reason, the most frequent first."
    )
    nodes: tuple[NodeChange, ...] = Field(
        default=(), description="Nodes that pods leave or enter, sorted by name."
    )
    spread: tuple[SpreadChange, ...] = Field(
        default=(), description="Imbalance of all nodes in the policy's scope, before and after."
    )
    limits: tuple[LimitAllowance, ...] = Field(
        default=(), description="Limits of the run, and of what its moves touch."
    )
    budgets: tuple[BudgetAllowance, ...] = Field(
        default=(), description="PodDisruptionBudgets that cover pods which move, or would."
    )
    optimisation: OptimisationStatus | None = Field(
        default=None, description="How good the plan is, where the planner Optimal made it."
    )


class Presence(StrEnum):
    """Which of two plans contains a move."""

    ONLY_NEW = "OnlyNew"
    ONLY_OLD = "OnlyOld"
    BOTH = "Both"
    ELSEWHERE = "Elsewhere"


class ComparedMove(AnswerPart):
    """A pod that one or both of two sets of policies move."""

    presence: Presence = Field(
        description="OnlyNew, OnlyOld, Both, or Elsewhere: both move the pod, to different nodes."
    )
    pod: str = Field(description="The pod, as namespace/name.")
    source_node: str = Field(description="Node that the pod runs on.")
    new_target_node: str | None = Field(description="Where the new policies send it.")
    old_target_node: str | None = Field(description="Where the old policies send it.")
    new_policy: str | None = Field(description="The new policy that moves it, and its strategy.")
    old_policy: str | None = Field(description="The old policy that moves it, and its strategy.")


class PlanComparison(AnswerPart):
    """Differences between two sets of policies, on the same cluster."""

    against: str = Field(description="The old set: live, or the file.")
    only_new: int = Field(ge=0, description="Pods that only the new set moves.")
    only_old: int = Field(ge=0, description="Pods that only the old set moves.")
    both: int = Field(ge=0, description="Pods that both move to the same node.")
    elsewhere: int = Field(ge=0, description="Pods that both move, to different nodes.")
    moves: tuple[ComparedMove, ...] = Field(description="Each pod that either moves.")
    old: tuple[PolicyPlan, ...] = Field(description="The plans of the old set.")


class Plan(Answer):
    """The moves of policies if they ran now; nothing is written."""

    source: str = Field(description="Where the cluster was read: a server or a file.")
    taken: datetime = Field(description="When it was read.")
    policies: tuple[PolicyPlan, ...] = Field(description="The policies, in order of age.")
    comparison: PlanComparison | None = Field(default=None, description="Against another set of policies.")

    def names(self) -> list[str]:
        """As ``-o name`` prints the pods that move."""
        moves = (move for each in self.policies for move in each.moves)
        return [f"pod/{move.pod.partition('/')[2]}" for move in moves]

    @property
    def moves(self) -> int:
        """The number of moves of all plans."""
        return sum(len(each.moves) for each in self.policies)

    @property
    def differs(self) -> bool:
        """Whether the two compared sets move different pods, or to different nodes."""
        found = self.comparison
        return found is not None and bool(found.only_new or found.only_old or found.elsewhere)
