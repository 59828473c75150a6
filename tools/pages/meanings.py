"""Meanings of words that the operator writes: events, keys, phases, refusals without a fixed sentence.

``pages.vocabulary`` finds the words in the code and fails for one that has no meaning here, and for a meaning
whose word is gone.
"""

from collections.abc import Collection, Mapping

#: Reason of an event: what it is on, and what it says.
EVENTS: Mapping[str, str] = {
    "BindingConditionsPending": "on a pod: its devices are allocated, and a driver prepares them",
    "Evicted": "on a pod: it was evicted; by which policy and strategy, why, and where its replacement goes",
    "FailedScheduling": "on a pod: no node takes it, or its scheduler name is served by none",
    "LeaderElection": "on the lease: a replica leads",
    "NotAdmitted": "on a pod: the kubelet of its node did not admit it",
    "NodeClosed": "on a node: no pod is placed on it any more; by which policy, and its condition",
    "NodeOpened": "on a node: pods are placed on it again",
    "PluginIsSlow": "on a pod: a PreBind or Bind plugin has not returned, and how long the pod waits for it",
    "PodEvicted": "on the owner of a pod: the pod was evicted, as in `Evicted`",
    "PodSurging": "on a Deployment: a rollout moves one of its pods",
    "Predicted": "on a policy: what a run in mode DryRun would move, in counts",
    "Preempted": "on a pod: it leaves to make room for one of higher priority",
    "Preempting": "on a PodGroup: room is made for it",
    "Proposed": "on a policy: what a run in mode Approve proposes, in counts",
    "Rebalanced": "on a policy: what a run in mode Enforce moves, in counts",
    "RecordRefused": "on a record: the operator ignores it, and which fact of the cluster contradicts it",
    "Scheduled": "on a pod: its node; on a PodGroup: its members start together",
    "StartTimedOut": "on a PodGroup: some members are placed, the others did not follow in time",
    "StrategyFailed": "on a policy: a strategy could not judge the cluster, and why",
    "Surging": "on a pod: a replacement is started elsewhere before it leaves",
    "Unschedulable": "on a PodGroup: why its members cannot start",
}

#: Key: what bears it, and what it means.
KEYS: Mapping[str, str] = {
    "plimsoll.dev/approved": "annotation of a record: `true` approves the move, `false` rejects it",
    "plimsoll.dev/bundle": "label of records of moves that are made all or none",
    "plimsoll.dev/consolidating": "taint of a node that is being emptied; no new pods come. With the effect"
    " PreferNoSchedule: of one that is to be emptied later; new pods prefer others",
    "plimsoll.dev/evict": "annotation of a pod or namespace: `false` forbids evictions by policies",
    "plimsoll.dev/from-node": "label of a record: the node that the pod leaves",
    "plimsoll.dev/in-work": "annotation of the lease: uid of the pod that is tried, ends of processes at it",
    "plimsoll.dev/operator": "label of a policy: the operator that serves it, if that has a name",
    "plimsoll.dev/owner-kind": "label of a record: the kind of the pod's owner",
    "plimsoll.dev/owner-name": "label of a record: the name of the pod's owner",
    "plimsoll.dev/pause-reason": "annotation: why the moves were paused",
    "plimsoll.dev/paused-by": "annotation: who paused the moves",
    "plimsoll.dev/pod-group": "label of a pod: the PodGroup whose member it is",
    "plimsoll.dev/policy": "label of a record: the policy that moves the pod",
    "plimsoll.dev/preferred-topology": "annotation of a group or its owner: nodes with few values of it",
    "plimsoll.dev/prometheus-url": "annotation of a Secret: the address that its credentials are sent to",
    "plimsoll.dev/price-per-hour": "annotation or label of a node: its price an hour, such as `0.192 EUR`",
    "plimsoll.dev/required-topology": "annotation of a group's owner: nodes with one value of it",
    "plimsoll.dev/queue": "label of a pod: the queue of its policy's fair share",
    "plimsoll.dev/replay-seconds": "annotation of a pod: how long it runs in a replay",
    "plimsoll.dev/run": "annotation of a policy: each new value starts a run",
    "plimsoll.dev/stop": "annotation of the operator's namespace: `true` stops the moves of all policies",
    "plimsoll.dev/strategy": "label of a record: the strategy that wants the move",
    "plimsoll.dev/wanted-gone": "annotation of a pod: the policy that gave it the least cost of deletion",
    "plimsoll.dev/unhealthy": "taint of a node with a bad condition; no new pods come",
    "plimsoll.dev/surged": "annotation of a pod template: changed to start a rollout that moves a pod",
}

#: Phase of a record.
PHASES: Mapping[str, str] = {
    "Predicted": "a dry run would make the move; nothing happens",
    "Planned": "the move waits for its turn, or in mode Approve for a person",
    "Evicting": "the eviction is recorded, and sent to the Eviction API or as a request",
    "Evicted": "the pod leaves; its replacement is awaited",
    "Surging": "a rollout starts the replacement before the pod leaves",
    "Settled": "the replacement is ready on another node",
    "Returned": "the replacement came back to the node that the pod left",
    "Blocked": "a PodDisruptionBudget did not allow the eviction",
    "Failed": "the eviction was rejected, or no replacement was ready in time",
    "Cancelled": "the move was no longer wanted or no longer proven, and nothing was evicted",
}

#: Phase of a PodGroup, as scheduler-plugins has them.
GROUP_PHASES: Mapping[str, str] = {
    "Pending": "fewer members exist than `minMember`",
    "PreScheduling": "enough members exist, none has a node",
    "Scheduling": "some members have a node",
    "Scheduled": "`minMember` members have a node",
    "Running": "`minMember` members run",
    "Unknown": "some members run and others lost their node",
    "Finished": "`minMember` members succeeded",
    "Failed": "a member failed, and too few are left",
}


def check(what: str, found: Collection[str], known: Collection[str]) -> None:
    """Every word has a meaning, and every meaning a word.

    Raises:
        KeyError: A word of one side is missing on the other.
    """
    if set(found) != set(known):
        missing, gone = sorted(set(found) - set(known)), sorted(set(known) - set(found))
        raise KeyError(f"{what} without a meaning in pages.meanings: {missing}; meanings without one: {gone}")
