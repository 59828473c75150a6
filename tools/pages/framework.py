"""The reference of what authors import: ``python -m pages.framework docs/reference/framework.md``.

One page of ``plimsoll.framework`` and ``plimsoll.framework.descheduling``, from signatures and docstrings,
with a table from Go's names. ``make docs`` writes it; a test fails when it lags behind, or lacks a name.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from plimsoll import framework
from plimsoll.framework import descheduling
from plimsoll.testing import builders, conformance, strategy_conformance

#: The headings, and the names below each, in the order of the page.
SECTIONS: Mapping[str, str] = {
    "Extension points, in calling order": """
        Plugin PreEnqueuePlugin QueueSortPlugin PreFilterPlugin PreFilterResult PreFilterExtensions
        FilterPlugin all_feasible NodeFilter NodeView PostFilterPlugin Nomination Rejections WhatIf
        PreemptionCandidate PreScorePlugin ScorePlugin NodeScore NormalizingPlugin MIN_SCORE MAX_SCORE
        ReservePlugin PermitPlugin PermitResult PreBindPlugin BindPlugin PostBindPlugin""",
    "What a plugin is given": """
        Snapshot ABSENT CPU MEMORY PODS STORAGE CycleState PodInfo PodTemplate ClusterObjects Node
        Pod Container ObjectMeta OwnerReference BoolArray IntArray RowArray milli units""",
    "Kinds of objects": """
        PodSpec PodStatus PodCondition ContainerStatus ContainerPort ResourceRequirements Toleration
        Volume NodeSpec NodeStatus Taint Namespace Service
        ReplicaSet StatefulSet ReplicationController PodDisruptionBudget PodGroup PriorityClass
        PersistentVolumeClaim PersistentVolume StorageClass CSINode""",
    "What a plugin returns": "Status Code SUCCESS SKIP unschedulable unresolvable error Diagnosis",
    "Arguments": "PluginArgs NoArgs ConfigurationError PluginError Registry",
    "When a rejected pod is tried again": """
        EnqueueExtensions EventWithHint HintByValue EventResource ActionType ClusterEvent Hint QueueingHint
        PodsToActivate""",
    "What a plugin declares of itself": """
        Declares Reads WatchedObject ResultVersion INDIFFERENT Versioned NodeSignature""",
    "Ports, found in the cycle state": """
        Binder VolumeBinder VolumeChoices WaitingPodsPort WaitingPods WaitingPod""",
    "Strategies": """
        Strategy StrategyKind StrategyContext UnplacedPods Candidates Candidate Destinations Verdict
        until_closed Bundle Beneficiary Evictor Refusal Prospects Outlook ProspectAttempt Planner
        Measurements Sample NodeClasses considered_nodes group_key is_owned key_of low_to_high NOT_YET
        GangUnit gangs_of PREFER_NO_EVICTION CannotJudgeError""",
    "What a strategy may say of itself": """
        Renewing Complaining Complaint Complaints Gravity Vicinity nodes_near pods_near EmptiesNodes""",
    "Tests": """
        a_pod a_node a_cluster a_snapshot the_info FilterPluginConformance ScorePluginConformance
        StrategyConformance""",
}

#: What tests import, of ``plimsoll.testing``.
TESTING = (
    *(builders.a_pod, builders.a_node, builders.a_cluster, builders.a_snapshot, builders.the_info),
    *(conformance.FilterPluginConformance, conformance.ScorePluginConformance),
    strategy_conformance.StrategyConformance,
)

INTRODUCTION = (
    "Written by `make docs` from signatures and docstrings: change those. Names below"
    " [Strategies](#strategies) and after it are in `plimsoll.framework.descheduling`, those below"
    " [Tests](#tests) in the modules that they name, all others in `plimsoll.framework`."
    " [Recipes](../recipes-for-plugins.md) show them in use."
)

#: Names of Go's scheduling framework and of descheduler's, ours, and what differs.
GO = """
fwk.Plugin; Name() | Plugin | the class attribute `name`
PluginFactory; New(ctx, args, handle) | Plugin | `__init__`; arguments are a `PluginArgs`
PreEnqueuePlugin | PreEnqueuePlugin |
QueueSortPlugin.Less | QueueSortPlugin | a key instead of a comparison
PreFilterPlugin; PreFilterResult.NodeNames | PreFilterResult |
PreFilterExtensions.AddPod; RemovePod | PreFilterExtensions | found by its methods: nothing returns it
FilterPlugin.Filter(…, nodeInfo) | NodeFilter | or `FilterPlugin`: all nodes in one call
NodeInfo | NodeView | or the columns of `Snapshot`
NodeInfo.Allocatable; Requested | Snapshot | `allocatable`, `requested`, `nonzero_requested`
SharedLister; NodeInfos().List() | Snapshot | an argument of each method
PostFilterPlugin; PostFilterResult | Nomination |
PreScorePlugin; ScorePlugin | ScorePlugin | or `NodeScore`: one node a call
ScoreExtensions.NormalizeScore | NormalizingPlugin |
MaxNodeScore | MAX_SCORE |
ReservePlugin; PermitPlugin; PostBindPlugin | ReservePlugin | the same names
PreBindPlugin; BindPlugin | PreBindPlugin | the same names, coroutines
Handle.IterateOverWaitingPods; GetWaitingPod | WaitingPodsPort | `for one in state.read(WaitingPodsPort).pods`
Handle.NominatedPodsForNode | WhatIf | `nominated(row)`, in PostFilter; scores do not see nominations
Handle.ClientSet; clients of custom resources | WatchedObject | `snapshot.objects.of(…)`
Handle.SharedInformerFactory() | ClusterObjects | `snapshot.objects.claims` …
Handle.Activate | PodsToActivate |
CycleState.Write; Read; StateData.Clone | CycleState | the key is the type
NewStatus(Unschedulable, …) | unschedulable |
UnschedulableAndUnresolvable | unresolvable |
AsStatus(err) | error | or raise
EnqueueExtensions.EventsToRegister | EnqueueExtensions |
ClusterEventWithHint; QueueingHintFn | EventWithHint |
Diagnosis; FitError | Diagnosis |
SignPlugin.SignPod | NodeSignature |
DeschedulePlugin; BalancePlugin | Strategy | `kind` says which of them
EvictorPlugin.Filter; PreEvictionFilter | Evictor |
Evictor().Filter(pod) | StrategyContext | `is_evictable(pod, reason)`
Evictor().PreEvictionFilter(pod) | StrategyContext | `is_movable(pod, reason)`
Evictor().Evict(ctx, pod, opts) | Candidate | `verdict = yield Candidate(…)`: the planner decides
EvictionNodeLimitError | Verdict | `NODE_CLOSED`
GetPodsAssignedToNodeFunc; nodes []*v1.Node | StrategyContext | `pods(node)`, `nodes`
MetricsCollector | Measurements | `context.measurements`
nodeutil.NodeFit | Prospects | `context.prospects.feasible(pod)`
"""


class PageError(Exception):
    """A name has no place on the page, or a place has no name."""


def exported() -> dict[str, Any]:
    """What both modules export, keyed by name."""
    return {
        name: getattr(module, name)
        for module in (framework, descheduling)
        for name in re.findall(r" as (\w+)$", Path(str(module.__file__)).read_text("utf-8"), re.MULTILINE)
    } | {each.__name__: each for each in TESTING}


def page() -> str:
    """The page, in Markdown.

    Raises:
        PageError: An exported name is in no section, or a section has another name.
    """
    names, placed = exported(), " ".join(SECTIONS.values()).split()
    table = [[cell.strip() for cell in row.split("|")] for row in GO.strip().splitlines()]
    wrong = sorted(set(names).symmetric_difference(placed)) + [
        ours for _, ours, _ in table if ours not in names
    ]
    if wrong:
        raise PageError(f"exported but in no section of tools/pages/framework.py, or the reverse: {wrong}")
    rows = [
        f"| {', '.join(f'`{each}`' for each in go.split('; '))} | {linked(ours)} | {how} |"
        for go, ours, how in table
    ]
    parts = [
        "# What plugins and strategies import",
        INTRODUCTION,
        "## Go's names",
        "\n".join(("| Go | Here | How |", "| --- | --- | --- |", *rows)),
    ]
    for title, members in SECTIONS.items():
        parts.append(f"## {title}")
        parts += [part for name in members.split() for part in entry(name, names[name], names)]
    return "\n\n".join(parts) + "\n"


def linked(name: str) -> str:
    """A link to a name's entry."""
    return f"[`{name}`](#{name.lower()})"


def entry(name: str, value: Any, names: Mapping[str, Any]) -> Iterator[str]:
    """The paragraphs of one name."""
    yield f"### {name}"
    if value in TESTING:
        yield f"`from {value.__module__} import {name}`"
    if isinstance(value, type) and value.__module__.startswith("plimsoll."):
        above = [each for each in value.__mro__[1:] if each.__module__.startswith("plimsoll.")]
        bases = [linked(each.__name__) for each in above if _is_named(each, names)]
        own = [value, *(each for each in above if not _is_named(each, names))]
        text, described = split(inspect.cleandoc(value.__doc__ or ""))
        yield text + (f" Also has what {bases[0]} has." if bases else "")
        lines = [line for each in own for line in members_of(each, described)]
        if lines:
            yield "\n".join(dict.fromkeys(lines))
    elif inspect.isfunction(value):
        tree = _tree(value)
        assert isinstance(tree, ast.FunctionDef)
        text, described = split(inspect.cleandoc(value.__doc__ or ""))
        yield f"`{signature(tree)}`"
        yield text
        if described:
            yield "\n".join(f"- `{each}`: {what}" for each, what in described.items())
    else:
        yield CONSTANTS[name]


#: Methods that are called by other signs than their names.
OPERATORS = ("__iter__", "__getitem__", "__contains__", "__len__")

#: What names that have no docstring are.
CONSTANTS: Mapping[str, str] = {
    "ABSENT": "-1: the code of a label that a node lacks.",
    "BoolArray": "A numpy array of bool.",
    "CPU": "The column of cpu (milli) in `Snapshot.allocatable` and `requested`.",
    "Candidates": "`Generator[Candidate | Bundle, Verdict, None]`: proposals out, verdicts in.",
    "Complaints": "`Mapping[Complaint, float]`: amounts above 0.",
    "Hint": "`Callable[[PodInfo, ClusterEvent], QueueingHint]`; what it raises is taken for QUEUE.",
    "INDIFFERENT": "The `ResultVersion` of a plugin that never affects a template.",
    "IntArray": "A numpy array of int64.",
    "MAX_SCORE": "100: the highest score of a node.",
    "MEMORY": "The column of memory (bytes).",
    "MIN_SCORE": "0: the lowest score of a node.",
    "PODS": "The column of the number of pods.",
    "NOT_YET": "In `StrategyContext.gangs`: the group cannot start, for lack of members.",
    "PREFER_NO_EVICTION": "The annotation of pods that are moved after all others.",
    "RowArray": "A numpy array of rows (intp).",
    "SKIP": "The status that lets a plugin be passed over for this pod.",
    "STORAGE": "The column of ephemeral storage (bytes).",
    "SUCCESS": "The status without an objection.",
    "VolumeChoices": '`Mapping[str, str]`: claim (`namespace/name`) to volume, "" to provision one.',
}


def members_of(kind: type, described: Mapping[str, str]) -> Iterator[str]:
    """A line for each field and method of a class itself."""
    tree = _tree(kind)
    assert isinstance(tree, ast.ClassDef)
    source = textwrap.dedent(inspect.getsource(kind)).splitlines()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
            not node.name.startswith("_") or node.name in OPERATORS
        ):
            text, _ = split(inspect.cleandoc(ast.get_docstring(node) or ""))
            form = f"{node.name}{_returns(node)}" if _is_property(node) else signature(node)
            yield f"- `{form}`" + (f": {' '.join(text.split())}" if text else "")
        elif isinstance(node, ast.AnnAssign) or (isinstance(node, ast.Assign) and issubclass(kind, Enum)):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            name = ast.unparse(target)
            if name.startswith("_"):
                continue
            comment = re.search(r"#: (.*)$", source[(node.end_lineno or 1) - 1])
            what = described.get(name) or (comment[1] if comment else "")
            shown = ast.unparse(node) if isinstance(node, ast.AnnAssign) else name
            yield f"- `{shown}`" + (f": {plain(what)}" if what else "")


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """How a function is called, in one line."""
    args = ast.unparse(node.args).removeprefix("self, ").removeprefix("cls, ")
    args = "" if args in {"self", "cls"} else args
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{prefix}{node.name}({args}){_returns(node)}".replace(": " + "->", " ->")


def _returns(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    mark = ": " if _is_property(node) else " -> "
    return "" if node.returns is None else f"{mark}{ast.unparse(node.returns)}"


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)


def split(docstring: str) -> tuple[str, dict[str, str]]:
    """A docstring in Markdown, and what it says of attributes and arguments, by name."""
    described: dict[str, str] = {}
    kept: list[str] = []
    section, name = "", ""
    for line in docstring.splitlines():
        if line in {"Attributes:", "Args:", "Returns:", "Raises:"}:
            section = line
        elif section and line and not line.startswith(" "):
            section = ""
            kept.append(line)
        elif section in {"Attributes:", "Args:"} and (found := re.match(r"    (\*{0,2}\w+): (.*)", line)):
            name = found[1]
            described[name] = found[2]
        elif section in {"Attributes:", "Args:"} and line.strip():
            described[name] += f" {line.strip()}"
        elif section in {"Returns:", "Raises:"} and line.strip():
            kept.append(f"{section} {line.strip()}" if kept[-1:] != [section] else line.strip())
        elif not section:
            kept.append(line)
    return plain("\n".join(kept).strip()), {each: plain(what) for each, what in described.items()}


def plain(text: str) -> str:
    """Markdown of what docstrings mark up, with examples as blocks of code."""
    text = re.sub(r":(?:class|mod|func|meth):`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    text = re.sub(r"\(docs/adr/(\d+)[^)]*\)", r"(ADR \1)", text)
    return re.sub(r"(?<=\S)::$", ":", text, flags=re.MULTILINE)


def _is_named(kind: type, names: Mapping[str, Any]) -> bool:
    return names.get(kind.__name__) is kind


@cache
def _tree(value: Any) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
