"""Rules for modules: their names, the first line of their docstrings, and retired names of classes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

#: Nouns in -ing that upstream uses or that name a thing; any other gerund as a module's name is refused.
NOUNS = {
    "binding": "upstream's word for a pod's node being written",
    "decoding": "the conversion of bytes into values, as msgspec calls it",
    "descheduling": "the wing of the API for authors of strategies, named after descheduler",
    "encoding": "the arithmetic form of a problem, as in the encoding of a program for a solver",
    "matching": "the matching of selectors, as the API calls it",
    "naming": "the rules for names of records",
    "pending": "an adjective, as in MakeRoomForPending",
    "planning": "the deciding half of the rebalancing wing, named in ADR 24",
    "queueing": "upstream's word, as in queueing hint",
    "rebalancing": "one of the two wings, and the name of the policy's section",
    "saving": "part of the compound noun power saving",
    "scheduling": "one of the two wings, upstream's word",
    "testing": "what Python projects call the package for authors' tests",
    "fuzzing": "the field's word for tests with generated input",
    "wing": "a half of the product",
    "timing": "a noun: timer, retry policy and rate limit",
}

#: Classes named otherwise than upstream names the idea, or that said too little: what to call them.
RETIRED = {
    "Aftercare": "nothing: the move machine",
    "Book": "PlanBuilder",
    "Carrier": "BindingPipeline",
    "Change": "ClusterEvent",
    "Circumstances": "PlanningContext",
    "Claims": "NominatedRequests",
    "Displacements": "DisplacementBreaker",
    "Hands": "nothing: the binding pipeline",
    "Heeding": "ProposalExecutor",
    "Holds": "Reservations",
    "Narrowing": "PreFilterResult",
    "Nominations": "Nominator",
    "Permission": "PermitResult",
    "Rebalancing": "RebalancingConfig",
    "RecordKeeper": "EvictionRecordStore",
    "Rooms": "Reservations",
    "SimulatedPods": "PreFilterExtensions",
    "Sleepers": "UnschedulablePods",
    "Troubles": "DegradedReasons",
    "Undertaking": "BundleExecution",
    "Worth": "QueueingStrategy",
}

_RIDDLE = re.compile(
    r"(?:What|Whatever|Whether|Who|Whom|Whose|Whoever|Which|How|Why|When|Where|Nobody|If|That|So that)\b"
)
_CLAUSE = re.compile(r"[,:;] (?:and |or |but )?(?:what|whatever|whether|who|whoever|whose|how|nobody)\b")
_IMPERATIVE = re.compile(
    r"(?:Ask|Begin|Bring|Build|Call|Compare|Create|Decide|Find|Get|Give|Keep|Let|Make|Read|Send|Take|Tell|Write)"
    r"(?= )"
)


def module_name_problem(path: Path) -> str | None:
    """What is wrong with the name of a module, if anything."""
    name = path.parent.name if path.stem in ("__init__", "__main__") else path.stem
    last = name.removeprefix("test_").rsplit("_", 1)[-1]
    if last.endswith("ing") and last not in NOUNS and not path.stem.startswith("test_"):
        return f"name the module after what it defines, not after an activity: {name!r}"
    return None


def first_line_problem(docstring: str) -> str | None:
    """What is wrong with the first line of a module's docstring, if anything."""
    first = docstring.strip().splitlines()[0].strip() if docstring.strip() else ""
    if not first.endswith("."):
        return "the first line ends with a period"
    if riddle := _RIDDLE.match(first):
        return f"say what the module is or does, subject first; not {riddle.group()!r}"
    if clause := _CLAUSE.search(first):
        return f"put a noun in place of the clause after {clause.group()!r}"
    if verb := _IMPERATIVE.match(first):
        return f"use the indicative, not the imperative {verb.group()!r}"
    return None


def retired_classes(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Public classes with a retired name: line, name, new name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in RETIRED:
            yield node.lineno, node.name, RETIRED[node.name]
