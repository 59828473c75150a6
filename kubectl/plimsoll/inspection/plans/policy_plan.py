"""Makes the plan of one policy in the form of an answer, with the operator's planner."""

from datetime import datetime

from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.inspection.plans.allowances import budget_allowances, limit_allowances
from plimsoll.inspection.plans.answer import PolicyPlan
from plimsoll.inspection.plans.moves import planned_moves
from plimsoll.inspection.plans.outlook import next_run, notes, outlook, schedule_in_words
from plimsoll.inspection.plans.refusals import refusal_groups
from plimsoll.inspection.plans.utilisation import UtilisationChange
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.moves import PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.policies.run_figures import optimisation_status

#: Input of a run: the policy's configuration, a fork of the cluster, and the planning context.
RunRead = tuple[RebalancingConfig, Cluster, PlanningContext]


def policy_plan(policy: SchedulingPolicy, read: RunRead, told: datetime | None = None) -> PolicyPlan:
    """The plan of a run now; ``told`` is the next run according to the status."""
    rebalancing, cluster, context = read
    spec = policy.spec.rebalancing or RebalancingSpec()
    made = make_plan(rebalancing, cluster, context)
    effect = UtilisationChange(cluster, context, made.moves)
    moment = next_run(policy, told, context.now)
    return PolicyPlan(
        policy=policy.metadata.name,
        planned=True,
        mode=spec.mode,
        planner=spec.planner,
        schedule=schedule_in_words(spec.schedule),
        next_run=moment,
        outlook=outlook(policy, len(made.moves), moment),
        notes=tuple(notes(policy, made, context.memory)),
        considered=made.considered,
        moves=tuple(planned_moves(made, spec.mode)),
        refused=refusal_groups(made.refused),
        nodes=tuple(effect.nodes()),
        spread=tuple(effect.spread(rebalancing)),
        limits=limit_allowances(rebalancing, cluster, context, made.moves),
        budgets=budget_allowances(cluster, made),
        optimisation=optimisation_status(made.optimisation),
    )
