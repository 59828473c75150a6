"""Defines what each reason for which a pod is not moved means, and its remedy, for all who show it.

A refusal has its own sentence with the facts of the case; what is here holds for every case of the reason.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

LIMITS = "rebalancing/limits.md"
PROTECTED = "rebalancing/protected-pods.md"
REPLACEMENTS = "rebalancing/replacements.md"
LOAD = "rebalancing/load.md"
PLANNERS = "rebalancing/planners.md"


class ReasonMeaning(Struct, frozen=True):
    """A reason in words.

    Attributes:
        meaning: Why the pod stays.
        remedy: What to do; "" if nothing is to be done.
        page: The page that explains it, below docs; "" for none.
    """

    meaning: str
    remedy: str = ""
    page: str = ""


_WAIT = "nothing: the next run judges it again"
_LIMIT = "nothing: it goes on in the next run; or raise the limit"
_ROOM = "add room, or widen the target selector; plimsoll explain pod names what each node lacks"
_EVICTOR = "nothing, or change the evictor's arguments in the policy"
_BUDGET = "bring the pods of the PodDisruptionBudget back to health, or change it"

#: By reason, in the order of the alphabet.
REASONS: Mapping[str, ReasonMeaning] = MappingProxyType(
    {
        "AlreadyMoving": ReasonMeaning("a move of the pod or of its replacement is under way", _WAIT),
        "BreaksGroup": ReasonMeaning("the other members of its group need it", page="gangs.md"),
        "Budget": ReasonMeaning("a PodDisruptionBudget allows no disruption now", _BUDGET, PROTECTED),
        "BudgetBackoff": ReasonMeaning(
            "a PodDisruptionBudget has said no, and is asked again later", _BUDGET, REPLACEMENTS
        ),
        "Closed": ReasonMeaning("the run evicts nothing more", _WAIT),
        "DaemonSetPods": ReasonMeaning("the pod belongs to a DaemonSet", page=PROTECTED),
        "EvictionBudget": ReasonMeaning(
            "a window of the policy allows no more", "nothing: the window ends", LIMITS
        ),
        "EvictionInProgress": ReasonMeaning(
            "another component carries out an eviction of the pod", _WAIT, "rebalancing/evictions.md"
        ),
        "FailedBarePods": ReasonMeaning("the pod has no owner that would replace it", _EVICTOR, PROTECTED),
        "Gone": ReasonMeaning("the pod is gone, or on another node", _WAIT),
        "HealsItself": ReasonMeaning("the node has recently used less, so the peak may pass", _WAIT, LOAD),
        "HeldBack": ReasonMeaning(
            "an earlier move of its owner failed or returned",
            "see how it ended: plimsoll history",
            REPLACEMENTS,
        ),
        "HeldByRule": ReasonMeaning(
            "a RebalancingRule of its namespace keeps it, or cannot be read",
            "wait for its window, or ask the namespace's owner to change the rule",
            PROTECTED,
        ),
        "LabelSelector": ReasonMeaning("its labels do not match the evictor's labelSelector", _EVICTOR),
        "LastReady": ReasonMeaning(
            "it is the only ready pod of its owner",
            "run more replicas, or set surge",
            "rebalancing/surges.md",
        ),
        "LimitRange": ReasonMeaning(
            "a LimitRange would refuse to create the pod again",
            "change the LimitRange, or the requests and limits of the pod's owner",
            REPLACEMENTS,
        ),
        "LoadLimit": ReasonMeaning("the run would move too much load", _LIMIT, LOAD),
        "LongGracePeriod": ReasonMeaning(
            "the pod may take longer to end than a NodeMaintenance waits (longestGraceSeconds)",
            page="how-to/drain-nodes.md#what-keeps-a-node-as-it-is",
        ),
        "MendsNothing": ReasonMeaning(
            "the move would not mend what the strategy complains of", _WAIT, PLANNERS
        ),
        "MinPodAge": ReasonMeaning("the pod is younger than the evictor asks for", _WAIT),
        "MinReplicas": ReasonMeaning(
            "its owner has fewer pods than minReplicas",
            "run more replicas, or set surge",
            "rebalancing/surges.md",
        ),
        "MirrorPod": ReasonMeaning("the pod mirrors a static pod of its kubelet", page=PROTECTED),
        "Moved": ReasonMeaning("the pod moves already in this plan"),
        "MovedRecently": ReasonMeaning("it replaced a moved pod within the last hour", _WAIT, REPLACEMENTS),
        "NamespaceLabelSelector": ReasonMeaning(
            "the labels of its namespace do not match the evictor's namespaceLabelSelector", _EVICTOR
        ),
        "NamespaceLimit": ReasonMeaning("the policy's perNamespace is used up", _LIMIT, LIMITS),
        "NeverEvict": ReasonMeaning(
            "plimsoll.dev/evict: false forbids its eviction",
            "remove the annotation to have it moved",
            PROTECTED,
        ),
        "NewComplaint": ReasonMeaning(
            "the move would cause a complaint no less severe than what it mends", _WAIT, PLANNERS
        ),
        "NoComparison": ReasonMeaning("its own node is not feasible and has no score", _WAIT),
        "NoController": ReasonMeaning(
            "no controller makes it again", "delete it yourself, or give it a controller", "cli/whatif.md"
        ),
        "NoDestination": ReasonMeaning("no node that takes it serves the strategy's purpose", _ROOM),
        "NoFeasibleNode": ReasonMeaning("no node takes the replacement", _ROOM),
        "NoHeadroom": ReasonMeaning(
            "its node is not emptied, to keep room for further pods", page="rebalancing/emptying-nodes.md"
        ),
        "NoOtherNode": ReasonMeaning("only its own node takes it", _ROOM),
        "NoRoom": ReasonMeaning("no node has room for the replacement", _ROOM),
        "NoRoomBeside": ReasonMeaning(
            "no other node has room while the pod still runs", _ROOM, "rebalancing/surges.md"
        ),
        "NoRoomMade": ReasonMeaning(
            "the move would make no room for the pending pod", _WAIT, "rebalancing/making-room.md"
        ),
        "NoSurge": ReasonMeaning("only a surge could move it, and none can", page="rebalancing/surges.md"),
        "NodeFit": ReasonMeaning("it does not fit on any other node", _ROOM),
        "NodeLeaving": ReasonMeaning("another tool empties its node", _WAIT, "reference/signals.md"),
        "NodeLimit": ReasonMeaning("the policy's perNode is used up", _LIMIT, LIMITS),
        "NotATarget": ReasonMeaning("no node that takes it may be a target", _ROOM),
        "NotAll": ReasonMeaning("another move of the same bundle cannot be made", _WAIT, PLANNERS),
        "NotAllowed": ReasonMeaning(
            "the operator lacks rights that the policy needs",
            "apply the manifest that the sentence names; a run begins when the rights are there",
            "install.md",
        ),
        "NotBound": ReasonMeaning("the pod is not bound to its node yet", _WAIT),
        "NotFeasible": ReasonMeaning("the target is not feasible any more", _WAIT),
        "NotMeasured": ReasonMeaning("a reading of the node or pod is missing", "see plimsoll top", LOAD),
        "NotRecorded": ReasonMeaning("its record could not be written", "see the log of the operator"),
        "NotYet": ReasonMeaning("its node was not over-used in enough runs in a row", _WAIT, LOAD),
        "OptedOut": ReasonMeaning(
            "an annotation forbids its eviction", "remove the annotation to have it moved", PROTECTED
        ),
        "OtherScheduler": ReasonMeaning(
            "a scheduler that no policy serves places the pod",
            "list it in scope.otherSchedulers, or give the pod our schedulerName",
            PROTECTED,
        ),
        "OutOfScope": ReasonMeaning("the policy does not look at it", "change spec.scope", PROTECTED),
        "NodesUnhealthy": ReasonMeaning(
            "half of the cluster or more looks unhealthy",
            "see whether the nodes or their reports are at fault; the policy goes on by itself",
            "how-to/unhealthy-nodes.md",
        ),
        "OwnerLeaving": ReasonMeaning("its owner is being deleted, and replaces no pod"),
        "OwnerLimit": ReasonMeaning("enough pods of its owner were moved within the hour", _WAIT, LOAD),
        "PingPong": ReasonMeaning("a move would bring a pod of its owner back", _WAIT, REPLACEMENTS),
        "PlacedByExtender": ReasonMeaning(
            "an extender has a say in its next node, which cannot be proved", page="extenders.md"
        ),
        "PluginError": ReasonMeaning("a plugin or strategy raised", "see the log of the operator"),
        "PodDisruptionBudget": ReasonMeaning(
            "the Eviction API named a PodDisruptionBudget that does not allow it", _BUDGET, PROTECTED
        ),
        "PodsDisplaced": ReasonMeaning(
            "pods have lost their place since the policy's moves began",
            "give them room; the policy goes on by itself",
            LIMITS,
        ),
        "PodsWithLocalStorage": ReasonMeaning("the pod has local storage", _EVICTOR),
        "PodsWithPVC": ReasonMeaning("the pod uses a PersistentVolumeClaim", _EVICTOR),
        "ForecastsMiss": ReasonMeaning(
            "too few replacements landed where they were expected",
            "see plimsoll history; lower minimumForecastHitPercent, or adopt the pods",
            "rebalancing/protected-pods.md",
        ),
        "PodsWithResourceClaims": ReasonMeaning("the pod uses resource claims", _EVICTOR),
        "PodsWithoutPDB": ReasonMeaning("no PodDisruptionBudget covers the pod", _EVICTOR),
        "PriorityThreshold": ReasonMeaning("its priority reaches the threshold", _EVICTOR),
        "RateLimit": ReasonMeaning("the policy's perMinute is used up", _LIMIT, LIMITS),
        "ReplacementNotReady": ReasonMeaning(
            "the pod that an earlier move brought is not ready",
            "mend the pod that the sentence names",
            REPLACEMENTS,
        ),
        "Resting": ReasonMeaning(
            "the policy pauses after moves without success",
            "see how they ended: plimsoll history; the policy goes on by itself",
            REPLACEMENTS,
        ),
        "RuleLimit": ReasonMeaning(
            "a RebalancingRule of its namespace allows no more moves in this hour", _WAIT, LIMITS
        ),
        "Settling": ReasonMeaning("its node was not measured twice since its last move", _WAIT, LOAD),
        "SeveralBudgets": ReasonMeaning(
            "several PodDisruptionBudgets cover the pod, which none allows", "leave one of them", PROTECTED
        ),
        "SharedClaim": ReasonMeaning("it shares a resource claim", page="rebalancing/devices.md"),
        "SmallGain": ReasonMeaning("the other node is hardly better", page=PLANNERS),
        "Stale": ReasonMeaning("the latest measurement of the node is too old", "see plimsoll top", LOAD),
        "StaticPod": ReasonMeaning("the pod is a static pod of its kubelet", page=PROTECTED),
        "Stopped": ReasonMeaning(
            "the stop button is pressed", "plimsoll resume lets moves go on", f"{LIMITS}#the-stop-button"
        ),
        "Suspended": ReasonMeaning(
            "the strategy leaves its owner alone after fruitless moves",
            "find out why its pods return; delete the records to try again",
            REPLACEMENTS,
        ),
        "SystemCriticalPods": ReasonMeaning("the pod has system critical priority", _EVICTOR),
        "TargetTooHot": ReasonMeaning("the target would use too much", _WAIT, LOAD),
        "Terminating": ReasonMeaning("the pod is being deleted already"),
        "TooLarge": ReasonMeaning("no under-used node would stay below its target with it", _WAIT),
        "TooManyRefusals": ReasonMeaning(
            "the run asked the API server often enough in vain", _WAIT, PLANNERS
        ),
        "TotalLimit": ReasonMeaning("the policy's total is used up", _LIMIT, LIMITS),
        "TwoYardsticks": ReasonMeaning(
            "its profile places it without looking at load", "enable NodeLoad in the profile", LOAD
        ),
        "WithinSpread": ReasonMeaning(
            "the node is above its target by no more than readings vary", _WAIT, LOAD
        ),
        "WorkloadLimit": ReasonMeaning("the policy's perWorkload is used up", _LIMIT, LIMITS),
        "WouldMoveAgain": ReasonMeaning("a strategy of the policy would move the replacement again", _WAIT),
        "WouldReturn": ReasonMeaning("the scheduler may put it on its own node again", _WAIT),
    }
)


def remedy_of(reason: str) -> str:
    """What to do about a refusal, "" if it is unknown or nothing is to be done."""
    found = REASONS.get(reason)
    return "" if found is None or found.remedy.startswith("nothing:") else found.remedy


def meaning_of(reason: str) -> str:
    """What a reason means, "" if a plugin of another package made it."""
    found = REASONS.get(reason)
    return "" if found is None else found.meaning


def next_step(reasons: Iterable[str]) -> str:
    """A line with the remedy of the first reason that has one, "" without one."""
    return next((f"next: {each}: {remedy}" for each in reasons if (remedy := remedy_of(each))), "")
