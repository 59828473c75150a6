"""Plans moves that are proven on a fork of the cluster: when a pod is moved, and when it stays.

Six ideas:

* A **candidate** is a pod that a strategy wants to leave its node, with the reason.
* The **plan so far** (:mod:`.plan_builder`) is a fork of the cluster with all moves of this plan made, and
  the rest of limits and budgets. Strategies read it too, so two pods never count on one place.
* A **check** (:mod:`.checks`) takes a candidate and the plan so far, and returns why the pod stays, or None.
  The checks are in one table; the first refusal decides, and is counted with its reason.
* The **proof** (:mod:`.proof`) is the last of them: the scheduler of the pod ranks the nodes for its
  replacement on the fork without the pod. The nodes are tried in their order (:mod:`.target_choice`), each
  with the checks of a target.
* A **complaint** is what a strategy finds wrong. A move must resolve its own and cause no new one of any
  strategy (:mod:`plimsoll.planning.complaint_comparison`).
* A **bundle** (:mod:`.verdicts`) is several candidates that all move or none.

The order of the checks::

    of the node        over_used_often_enough   over-used in enough runs in a row
                       load_of_source           its load does not fall by itself, and was read since
    of the pod         protections              no evictor protects it, nor its group
                       limits                   none of the run, node, namespace or owner is used up
                       disruption_budget        its PodDisruptionBudget allows one more
                       ready_replacements       no replacement of its owner is still not ready
                       blocked_budget           its budget has not just blocked an eviction
                       fruitless_moves          moves of its owner have not just failed
                       already_moving           no earlier move is about to take it off its node
                       moved_recently           it does not replace a pod that has just moved
                       admission                no LimitRange refuses to create it again
                       load_of_pod              by load: it is measured, and its owner's share is not used up
                       known_scheduler          a known scheduler places the replacement
                       trusted_forecasts        enough earlier forecasts came true, if it is another scheduler
    of each target     left_recently            its owner has not just left that node
                       load_of_target           the node stays below its threshold
                       gain                     the scheduler's score rises enough
                       complaints               the strategy's own decrease, and there is no new one

An accepted move is made in the fork immediately. The same input yields the same plan. Right before its
eviction a move passes the same checks in the present cluster (``planner.revalidate``).

Which calls which, only downwards::

    planner ─▶ verdicts ─▶ proof ─▶ checks ─▶ plan_builder
    plan_builder ─▶ template_proofs ─▶ target_choice, and prospects ─▶ load_lines ─▶ load_guards
"""
