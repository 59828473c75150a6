"""Plimsoll: a Kubernetes scheduler and descheduler in one operator.

Two wings share one mirrored cluster. ``scheduling`` acts on decisions of ``engine``, ``rebalancing`` on
decisions of ``planning``; both deciding packages are pure. ``docs/architecture.md`` describes the layers.

A pod, from the watch to its binding::

    plimsoll.kube.reflector                  lists and watches, decodes lines into values
    plimsoll.cluster.ingestion               applies events to the cache and notifies its subscribers
    plimsoll.cluster.cache                   placed and assumed pods
    plimsoll.scheduling.queue.feed           adds pods to the queue and requeues them at events
    plimsoll.scheduling.queue.queue          which pod is next
    plimsoll.scheduling.loop                 pops pods and starts attempts
    plimsoll.engine.attempt                  one scheduling attempt, step by step
    plimsoll.engine.scheduler                filters and scores of one profile
    plimsoll.engine.cache.template           cached results of one template
    plimsoll.scheduling.binding.pipeline     runs binding cycles concurrently
    plimsoll.scheduling.binding.cycle        Reserve, Permit, PreBind, Bind, PostBind
    plimsoll.kube.pods                       writes the binding

A policy, from its schedule to a verified move::

    plimsoll.rebalancing.schedule            when runs are due
    plimsoll.rebalancing.controller          the policies, and when each runs
    plimsoll.rebalancing.runs.run            one run of one policy
    plimsoll.rebalancing.runs.config         the policy as plain values
    plimsoll.rebalancing.runs.plan_runner    has the plan computed in a fork
    plimsoll.planning.planners               selects the planner of a policy
    plimsoll.planning.proven.planner         strategies and proofs
    plimsoll.planning.proven.plan_builder    the plan on a fork
    plimsoll.planning.proven.target_choice   the node for a replacement
    plimsoll.rebalancing.moves.machine       the life of a move as a state machine
    plimsoll.rebalancing.execution.executor  carries out the machine's instructions
    plimsoll.rebalancing.records.store       Eviction records
    plimsoll.cluster.reservations            room that is reserved for replacements
    plimsoll.kube.pods                       sends the eviction
    plimsoll.rebalancing.moves.sightings     recognizes replacements
    plimsoll.rebalancing.runs.status         the status of the policy
"""

__version__ = "0.1.0"
