"""Writes pages of words that the operator writes: ``python -m pages.vocabulary docs/reference``.

Refusals, events, phases, annotations and labels, as the code has them, with their meanings. ``make docs``
writes the pages, and a test fails when they lag behind.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import distributions
from distributions import dotted
from pages import meanings
from plimsoll.api.v1alpha1.eviction_phases import FINISHED, SUCCESSORS, Phase
from plimsoll.api.v1alpha1.pod_group import GroupPhase
from plimsoll.inspection.refusal_reasons import REASONS, ReasonMeaning
from plimsoll.planning.limits import LimitLevel
from plimsoll.planning.moves import HoldReason
from plimsoll.rebalancing.runs.status import DONE
from plimsoll.toolkit.descheduling.disruption_signals import SIGNALS, Reading
from syntax_trees import nodes, syntax_trees

REFUSALS_LEAD = (
    "Why a pod stays where it is: the reasons in `status.counts.refused` of a policy, in `plimsoll plan` and"
    " in the metric `plimsoll_rebalancer_refused_candidates_total`. `plimsoll plan` and `plimsoll explain`"
    " say the same of what to do. A sentence has the facts of the case; … is a name or a number. How to find"
    " out: [nothing is evicted](../how-to/nothing-is-evicted.md)."
)
#: Calls that emit an event, with the places of its reason and action; that of a PodGroup's is fixed.
EMITTED: Mapping[str, tuple[int, int | None]] = {"EventNote": (1, 2), "EmitEvent": (1, 2), "note": (1, None)}
EVENTS_LEAD = (
    "Every event that the operator emits. In addition a policy gets a Warning event for each new reason of"
    " its condition `Degraded` ([conditions](conditions.md)); its reason is that of the condition."
)
SIGNALS_LEAD = (
    "What others write on pods, namespaces and nodes to steer disruption, and how the planners `Proven` and"
    " `Optimal` take it; `Upstream` reads our own annotation only, as descheduler does. A value that cannot"
    " be read protects: the pod stays (`OptedOut`, `NeverEvict`), or the node is not emptied, and the"
    " policy's status and `plimsoll explain` say so. A cost that"
    " cannot be read is above all others, and is named likewise. Strategies"
    " that empty nodes are `ConsolidateNodes` and `HighNodeUtilization`; the objective `FewestNodes` keeps"
    " to the same rows. The value `true` of descheduler's `evict` outranks the rows of others about the pod."
    " Preemption is part of scheduling and reads none."
)
AT = {
    Reading.TRUE: 'at "true" ',
    Reading.FALSE: 'at "false" ',
    Reading.TRUE_OR_DURATION: 'at "true", and until the duration is over, ',
    Reading.NUMBER_OR_NEVER: "at 2147483647 ",
}
WRITTEN = "Written by `make docs` from the code: change that.\n"
_KEY = re.compile(r"plimsoll\.dev/[a-z][a-z-]*")


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A module of the product: its name, its syntax tree, and its constants that are strings."""

    name: str
    tree: ast.Module
    constants: Mapping[str, str]

    def text(self, node: ast.expr) -> str | None:
        """Returns a string, a constant, or a template with … for what varies; None for the rest."""
        match node:
            case ast.Constant(value=str(value)):
                return value
            case ast.Name(id=name):
                return self.constants.get(name)
            case ast.JoinedStr(values=values):
                return "".join(
                    str(each.value) if isinstance(each, ast.Constant) else self._varying(each)
                    for each in values
                )
        return None

    def _varying(self, node: ast.expr) -> str:
        inner = node.value if isinstance(node, ast.FormattedValue) else node
        return (self.text(inner) if isinstance(inner, ast.Name) else None) or "…"


@cache
def modules() -> tuple[Module, ...]:
    """Reads every module of the product; constants that are imported are known as well."""
    trees = {
        dotted(path).removeprefix("plimsoll."): tree
        for path, tree in sorted(
            syntax_trees(distributions.modules()).items(), key=lambda each: dotted(each[0])
        )
    }
    own = {name: dict(_constants(tree)) for name, tree in trees.items()}
    return tuple(Module(name, tree, {**_imported(tree, own), **own[name]}) for name, tree in trees.items())


def refusals(found: Sequence[Module]) -> dict[str, list[str]]:
    """Returns the sentences of every refusal by its reason, sorted, with … where a sentence varies."""
    said: dict[str, list[str]] = {}
    for module in found:
        for call in _calls(module, "Refusal"):
            reason = module.text(call.args[0]) if call.args else None
            if reason is not None and len(call.args) > 1:
                sentences = said.setdefault(reason, [])
                sentence = module.text(call.args[1])
                if sentence is not None and sentence not in sentences:
                    sentences.append(sentence)
    for level in (*LimitLevel, *HoldReason):
        said.setdefault(level.value, [])
    return {reason: said[reason] for reason in sorted(said)}


def events(found: Sequence[Module]) -> list[tuple[str, str, str, str]]:
    """Returns reason, action, type and module of every event that the operator emits under a fixed reason."""
    rows = set()
    for module in found:
        for name, (place, action_place) in EMITTED.items():
            for call in _calls(module, name):
                if len(call.args) <= place:
                    continue
                reason = module.text(call.args[place])
                action = "Scheduling" if action_place is None else module.text(call.args[action_place])
                if reason and action and "…" not in reason:
                    warns = any(each.arg == "is_warning" for each in call.keywords)
                    rows.add((reason, action, "Warning" if warns else "Normal", module.name))
    ends = [(reason, "Rebalancing", "Normal", "rebalancing.runs.status") for reason, *_ in DONE.values()]
    return sorted({*rows, *ends})


def event_sentences(found: Sequence[Module]) -> dict[str, list[str]]:
    """Returns what events say, by reason, as far as the code has it where it emits them."""
    said: dict[str, list[str]] = {}
    for module in found:
        for function in nodes(module.tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            inner = tuple(ast.walk(function))
            local = {
                each.targets[0].id: text
                for each in inner
                if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
                if (text := module.text(each.value)) is not None
            }
            here = Module(module.name, module.tree, {**module.constants, **local})
            for call in inner:
                match call:
                    case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in EMITTED:
                        place, action = EMITTED[name]
                        last = (place if action is None else action) + 1
                        reason = here.text(call.args[place]) if len(call.args) > last else None
                        sentence = here.text(call.args[last]) if reason else None
                        if reason and sentence and sentence not in said.setdefault(reason, []):
                            said[reason].append(sentence)
    return {reason: sentences for reason, sentences in sorted(said.items()) if "\u2026" not in reason}


def keys(found: Sequence[Module]) -> list[tuple[str, str]]:
    """Returns every annotation, label and taint of ours, and the modules that define it."""
    rows: dict[str, list[str]] = {}
    for module in found:
        for value in dict(_constants(module.tree)).values():
            if _KEY.fullmatch(value) and not value.endswith(("/none", "/v")):
                rows.setdefault(value, []).append(module.name)
    return [(key, ", ".join(f"`{each}`" for each in sorted(set(rows[key])))) for key in sorted(rows)]


def pages() -> dict[str, str]:
    """Returns the pages, keyed by their files' names."""
    found = modules()
    meanings.check("events", {reason for reason, *_ in events(found)}, meanings.EVENTS)
    meanings.check("keys", {key for key, _ in keys(found)}, meanings.KEYS)
    return {
        "refusals.md": _refusals_page(refusals(found)),
        "events.md": table(
            "Events",
            EVENTS_LEAD,
            ("Reason", "Action", "Type", "Meaning", "Module"),
            [
                (f"`{reason}`", action, kind, meanings.EVENTS[reason], f"`{name}`")
                for reason, action, kind, name in events(found)
            ],
        ),
        "keys.md": table(
            "Annotations, labels and taints",
            "Keys of `plimsoll.dev`, what bears them, and the modules that define them.",
            ("Key", "Meaning", "Module"),
            [(f"`{key}`", meanings.KEYS[key], where) for key, where in keys(found)],
        ),
        "phases.md": _phases_page(),
        "signals.md": table(
            "Signals of others",
            SIGNALS_LEAD,
            ("Key", "On", "Defined by", "Values", "What its owner does", "What Plimsoll does"),
            [
                (
                    f"`{each.key}`",
                    f"{each.bearer}, {each.form}",
                    each.owner,
                    each.reading.value,
                    each.owner_does,
                    "; ".join(filter(None, (AT.get(each.reading, "") + each.effect.value, each.waives))),
                )
                for each in SIGNALS
            ],
        ),
    }


def _refusals_page(said: Mapping[str, list[str]]) -> str:
    meanings.check("refusals", said, REASONS)
    return table(
        "Refusals",
        REFUSALS_LEAD,
        ("Reason", "Why it stays", "What to do", "Sentences"),
        [
            (f"`{reason}`", _why(REASONS[reason]), REASONS[reason].remedy, "<br>".join(map(_cell, sentences)))
            for reason, sentences in said.items()
        ],
    )


def _why(reason: ReasonMeaning) -> str:
    return f"[{reason.meaning}](../{reason.page})" if reason.page else reason.meaning


def _phases_page() -> str:
    meanings.check("phases", set(Phase), meanings.PHASES)
    meanings.check("phases of PodGroups", set(GroupPhase), meanings.GROUP_PHASES)
    moves = [
        (
            f"`{phase}`",
            meanings.PHASES[phase],
            ", ".join(f"`{each}`" for each in Phase if each in SUCCESSORS[phase]) or "none: finished",
        )
        for phase in Phase
    ]
    head = table(
        "Phases",
        "Phases of an Eviction record, and those that may follow. "
        f"Finished records, which retention may drop: {', '.join(f'`{each}`' for each in FINISHED)}.",
        ("Phase", "Meaning", "Followed by"),
        moves,
    )
    rows = "".join(f"| `{each}` | {meanings.GROUP_PHASES[each]} |\n" for each in GroupPhase)
    return f"{head}\n## Phases of a PodGroup\n\n| Phase | Meaning |\n| --- | --- |\n{rows}"


def table(title: str, lead: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Returns a page with one table, in Markdown."""
    body = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    rule = " | ".join("---" for _ in columns)
    return f"# {title}\n\n{lead}\n\n{WRITTEN}\n| {' | '.join(columns)} |\n| {rule} |\n{body}"


def _calls(module: Module, name: str) -> Sequence[ast.Call]:
    return _calls_of(module).get(name, ())


@cache
def _calls_of(module: Module) -> Mapping[str, Sequence[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for node in nodes(module.tree):
        match node:
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
                found.setdefault(called, []).append(node)
    return found


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=False))
            else:
                pairs = [(target, value)] if value is not None else []
            for left, right in pairs:
                if (
                    isinstance(left, ast.Name)
                    and isinstance(right, ast.Constant)
                    and isinstance(right.value, str)
                ):
                    yield left.id, right.value


def _imported(tree: ast.Module, own: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    known: dict[str, str] = {}
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            there = own.get(node.module.removeprefix("plimsoll."), {})
            known |= {each.asname or each.name: there[each.name] for each in node.names if each.name in there}
    return known


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page_name, text in pages().items():
        (folder / page_name).write_text(text, encoding="utf-8")
