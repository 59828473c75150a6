"""Writes conditions and their reasons: ``python -m pages.conditions docs/reference/conditions.md``.

The reasons are read from the code, in the functions that say them; their meanings are here. A reason without
a row, or a row without a reason, fails ``make docs`` and a test.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from pages.vocabulary import Module, modules, table
from syntax_trees import nodes

#: Functions whose dictionaries, tuples and arguments ``why`` and ``reason`` hold reasons, by module.
SAID_IN: Mapping[str, frozenset[str]] = {
    "policy_controller.status": frozenset({"describe"}),
    "policy_controller.controller": frozenset({"_describe"}),
    "policies.judgement": frozenset({"judge", "judged_by_schema", "divide"}),
    "policies.profiles": frozenset({"failing"}),
    "rebalancing.runs.degraded_reasons": frozenset({"of", "advice", "look_back"}),
    "rebalancing.runs.scope_review": frozenset({"troubles", "advice"}),
    "rebalancing.runs.contested_nodes": frozenset({"advice"}),
    "rebalancing.runs.load_conditions": frozenset({"by_load_conditions"}),
    "scheduling.orphaned_pods": frozenset({"advice"}),
    "scheduling.adoption": frozenset({"look", "_difference"}),
    "app.watchdog": frozenset({"_withdraw"}),
    "scheduling.gangs.status": frozenset({"status_of"}),
}
_REASON = re.compile(r"[A-Z][a-z]+[A-Za-z]*")

#: Words that the functions say and that are types of conditions.
TYPES = frozenset({"Accepted", "Ready", "Degraded", "Overlapping", "Contested", "Paused", "PodsOrphaned"})

_REJECTED, _DEGRADED = "`Accepted=False`, `Ready=False`, `Degraded=True`", "`Degraded=True`"
_LAST = "the spec cannot be used; the last accepted one remains in effect"

#: Reason: condition, meaning, remedy.
MEANINGS: Mapping[str, tuple[str, str, str]] = {
    "Valid": ("`Accepted=True`", "every part of the spec can be used", ""),
    "Serving": ("`Ready=True`", "the policy is at work; the message says what it does", ""),
    "AsExpected": ("`Degraded=False`, and others that ended", "nothing is missing", ""),
    "Suspended": (
        "`Ready=False`",
        "`spec.suspend` is true; nothing is decided",
        "`kubectl plimsoll resume NAME`",
    ),
    "NotAccepted": ("`Ready=False`", "the operator has not looked at the spec yet", "wait, or see its log"),
    "InvalidSpec": (_REJECTED, _LAST, "change the field that the message names"),
    "InvalidConfiguration": (_REJECTED, _LAST, "change the plugin, strategy or argument that it names"),
    "PluginFailed": (
        f"{_REJECTED}, or `Degraded=True` alone",
        "a plugin raised when it was built, or raises while it decides",
        "see the log; change its arguments, or disable it",
    ),
    "PluginSlow": (
        "`Degraded=True`",
        "several calls in a row of a plugin took more than 0.1 s each; no pod is placed meanwhile",
        "make it faster, or disable it",
    ),
    "SolverMissing": (
        _REJECTED,
        "`planner: Optimal` needs a solver that is not installed; the image has it",
        "install the wheel plimsoll_optimal of the same release, or take another planner",
    ),
    "SchedulerNameTaken": (_REJECTED, "an older policy serves the scheduler name", "choose another name"),
    "QueueSortDiffers": (
        _REJECTED,
        "one queue serves all policies, and an older one sorts it otherwise",
        "use the same queueSort plugin with the same arguments",
    ),
    "NodesOverlap": (
        _REJECTED,
        "the policy may place pods on nodes that an older policy of another operator fills",
        "give both an `addedAffinity` that requires different values of one label, as `plimsoll pools` does",
    ),
    "OperatorPlacesOnly": (
        _REJECTED,
        "the policy belongs to an operator with a name, which places pods and moves none",
        "move its pods by a policy without the label `plimsoll.dev/operator`",
    ),
    "NotAllowed": (
        "`Ready=False` or `Degraded=True`",
        "rights are missing that the policy needs; nothing that is not allowed is attempted",
        "apply the manifest that the message names",
    ),
    "ExtensionLeftOut": (
        _DEGRADED,
        "a plugin package that the policy names could not be loaded",
        "see the message; reinstall it",
    ),
    "AdoptionNotApplied": (
        _DEGRADED,
        "what adopts pods is missing, or not as the policy says",
        "`plimsoll adopt NAME --apply`",
    ),
    "AdoptionNotCompared": (
        _DEGRADED,
        "the operator may not read what adopts pods",
        "apply `deploy/components/adoption`",
    ),
    "NoLeader": (
        "`Ready=False`",
        "the watchdog found that no operator leads; new pods are not adopted",
        "let the operator run; `plimsoll release` hands waiting pods over",
    ),
    "EvictionsShadowed": (
        _DEGRADED,
        "another kind has the short name that commands use for records",
        "write `evictions.plimsoll.dev` in full",
    ),
    "ExtenderFailed": (_DEGRADED, "an HTTP extender failed; the message says how", "see the extender"),
    "Stopped": (
        "`Paused=True`",
        "the stop button is pressed: no policy moves pods",
        "`kubectl plimsoll resume`",
    ),
    "Hanging": (_DEGRADED, "a plan was abandoned, and still runs", "check strategies of other packages"),
    "RunFailed": (_DEGRADED, "the latest run crashed or timed out", "see the log of the operator"),
    "RunOverdue": (
        _DEGRADED,
        "a run takes long, and due runs were skipped",
        "run less often, narrow the scope",
    ),
    "Resting": (
        _DEGRADED,
        "five moves in a row achieved nothing; the policy pauses for an hour",
        "see history",
    ),
    "NodesUnhealthy": (
        _DEGRADED,
        "half of the nodes or more look unhealthy; moves pause until fewer do",
        "see whether the nodes or their reports are at fault",
    ),
    "PodsDisplaced": (
        _DEGRADED,
        "pods lost their place since moves began; moves pause until they have one",
        "make room, or wait",
    ),
    "StrategySuspended": (
        _DEGRADED,
        "a strategy ignores a workload after five fruitless moves in a row",
        "find out why its pods return; delete the records to try again",
    ),
    "StrategyFailed": (_DEGRADED, "a strategy raised or could not judge the cluster", "see the message"),
    "TwoYardsticks": (
        _DEGRADED,
        "a strategy moves pods by what nodes use, a profile places them by requests alone",
        "enable `NodeLoad` in the profile",
    ),
    "NotMeasured": (
        _DEGRADED,
        "the planner `Optimal` plans by what nodes use, and none is measured",
        "make the metrics API answer",
    ),
    "SurgeForbidden": (_DEGRADED, "a surge was refused by the API server", "grant what the message names"),
    "ScopeEmpty": (
        _DEGRADED,
        "for a minute the scope has matched no pod with a node",
        "correct the selectors",
    ),
    "ScopeNameUnknown": (_DEGRADED, "the scope names a namespace or class that does not exist", "correct it"),
    "SamePods": (
        "`Overlapping=True`",
        "another enforcing policy may move the same pods",
        "separate the scopes, or accept it",
    ),
    "AutoscalerEmptiesNodes": (
        "`Contested=True`",
        "the policy empties nodes, and an autoscaler was about to remove a node with pods within a day",
        "let one of them do it: [next to an autoscaler](../rebalancing/autoscalers.md)",
    ),
    "SchedulerNameUnknown": (
        "`PodsOrphaned=True`",
        "pods wait whose `schedulerName` is similar to the policy's and served by none",
        "recreate the pods with the right name",
    ),
    "Scheduled": (
        "`Scheduled=True` of a PodGroup",
        "as many members as `minMember` have, or had, a node",
        "",
    ),
    "TimedOut": (
        "`Scheduled=False` of a PodGroup",
        "the members did not get their nodes within `scheduleTimeoutSeconds`",
        "see the message",
    ),
    "Unschedulable": (
        "`Scheduled=False` of a PodGroup, `PodScheduled=False` of a pod",
        "too few members exist, or not all have room; of a pod: no node takes it",
        "`plimsoll explain pod`",
    ),
    "NotReadyForScheduling": (
        "`PodScheduled=False` of a pod",
        (
            "no node takes the pod, nor would a new one: its queue has no capability left, its group is not"
            " complete, a claim of it, its volume or class does not exist or is not bound, or the node that"
            " it names does not exist; autoscalers do not act on it (KEP-5501)"
        ),
        "see the message; `plimsoll explain pod`",
    ),
    "SchedulerError": (
        "`PodScheduled=False` of a pod",
        "an attempt failed for another reason than room, such as a rejected binding",
        "see the message; it is tried again",
    ),
    "PreemptionByScheduler": (
        "`DisruptionTarget=True` of a pod",
        "the pod leaves to make room for one of higher priority",
        "",
    ),
}
LEAD = (
    "Conditions that the operator writes, most of them of a SchedulingPolicy, with every reason that a"
    " condition can have. A policy that is degraded for several reasons has the first one here, all sentences"
    " in its message, and all reasons in the metric `plimsoll_policy_degraded`. What to do about the"
    " commonest: [the policy does nothing](../how-to/the-policy-does-nothing.md)."
)


def reasons(found: Sequence[Module]) -> set[str]:
    """Returns every reason of a condition that the code can write."""
    said = {each for module in found for each in _said(module) if _REASON.fullmatch(each)}
    return said - TYPES


def page() -> str:
    """Returns the page.

    Raises:
        KeyError: A reason has no row, or a row no reason.
    """
    known = reasons(modules())
    if known != set(MEANINGS):
        raise KeyError(f"conditions without a row: {known - set(MEANINGS)}; rows: {set(MEANINGS) - known}")
    order = sorted(MEANINGS, key=lambda reason: (MEANINGS[reason][0], reason))
    rows = [(MEANINGS[reason][0], f"`{reason}`", *MEANINGS[reason][1:]) for reason in order]
    return table("Conditions", LEAD, ("Condition", "Reason", "Meaning", "Remedy"), rows)


@cache
def _said(module: Module) -> Sequence[str]:
    return [*_found(module)]


def _found(module: Module) -> Iterator[str]:
    names = SAID_IN.get(module.name, frozenset())
    for node in nodes(module.tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in names:
                yield from _in_function(module, node)
            case ast.AnnAssign(target=ast.Name(id="reason"), value=ast.Constant(value=str(value))):
                yield value  # of an error that refuses a configuration
            case ast.Call(func=ast.Attribute(attr="degrade" | "_degrade"), args=[first, *_]):
                yield module.text(first) or ""
            case ast.Call(func=ast.Attribute(attr="explain" | "_explain"), args=[_, reason, *_]):
                yield module.text(reason) or ""
            case ast.Dict(keys=keys, values=values) if module.name == "writers.pods":
                written = {module.text(key): value for key, value in zip(keys, values, strict=True) if key}
                if written.get("type") is not None and "reason" in written:
                    yield module.text(written["reason"]) or ""


def _in_function(module: Module, function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        found: list[ast.expr | None] = []
        match node:
            case ast.Dict(keys=keys):
                found = [*keys]
            case ast.Subscript(slice=index, ctx=ast.Store()):
                found = [index]
            case ast.Tuple(elts=[first, *_]):
                found = [first]
            case ast.keyword(arg="why" | "reason", value=value):
                found = [value]
            case ast.Assign(targets=[ast.Name(id="why")], value=value):
                found = [value]
            case ast.Return(value=value):
                found = [value]
            case ast.BoolOp(values=values):
                found = [*values]
        for each in found:
            yield from _texts(module, each)


def _texts(module: Module, node: ast.expr | None) -> Iterator[str]:
    match node:
        case None:
            return
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(module, body)
            yield from _texts(module, orelse)
        case _:
            yield module.text(node) or ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
