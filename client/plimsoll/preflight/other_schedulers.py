"""Finds other schedulers, deschedulers and autoscalers that act on the same nodes and pods.

A program is certain to run if it was observed: by a renewed lease, an event of the last hour, or a ready pod
of its image. A match of names only makes it likely.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from msgspec import Struct

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.model.counted import agreeing
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER
from plimsoll.preflight.findings import Area, Certainty, Finding, Level, Unread, unchecked
from plimsoll.preflight.leases import Leases, is_renewed, pod_of
from plimsoll.preflight.workloads import RunningWorkload

#: Maximum number of observations that a sentence names.
NAMED = 3

KUBE, KOORD, AUTOSCALER = "kube-scheduler", "koord-scheduler", "cluster-autoscaler"


class ProgramKind(Enum):
    """The kinds of decisions that a program makes."""

    PLACES = "places pods"
    MOVES = "evicts pods"
    SCALES = "adds and removes nodes"


class Program(Struct, frozen=True):
    """A program that is recognised by its names.

    Attributes:
        word: The part of its images' paths, and the name of its executable.
        lease: The default name of its lease, in any namespace.
        reporter: Its name in events.
        scheduler_name: The scheduler name that it serves by default.
    """

    name: str
    work: ProgramKind
    word: str
    lease: str = ""
    reporter: str = ""
    scheduler_name: str = ""


_PLACES, _MOVES, _SCALES = ProgramKind

#: Names from the manifests, charts and sources of each project: word, lease, reporter, scheduler name.
PROGRAMS = (
    Program(KUBE, _PLACES, KUBE, KUBE, DEFAULT_SCHEDULER, DEFAULT_SCHEDULER),
    Program("Volcano", _PLACES, "vc-scheduler", "", "volcano", "volcano"),
    Program("YuniKorn", _PLACES, "yunikorn", "", "yunikorn", "yunikorn"),
    Program("Koordinator", _PLACES, KOORD, KOORD, KOORD, KOORD),
    Program("KAI Scheduler", _PLACES, "kai-scheduler", "", "", "kai-scheduler"),
    Program("descheduler", _MOVES, "descheduler", "descheduler", "sigs.k8s.io.descheduler"),
    Program("koord-descheduler", _MOVES, "koord-descheduler", "koord-descheduler"),
    Program("Karpenter", _SCALES, "karpenter", "karpenter-leader-election", "karpenter"),
    Program("Cluster Autoscaler", _SCALES, AUTOSCALER, AUTOSCALER, AUTOSCALER),
)

#: Parts of image paths of all programs.
WORDS = frozenset(program.word for program in PROGRAMS)

#: The reporters to search the cluster's events for.
REPORTERS = tuple(program.reporter for program in PROGRAMS if program.reporter)


class DetectedProgram(Struct, frozen=True):
    """A running program.

    Attributes:
        evidence: The observations that show it, the most certain first.
    """

    program: Program
    evidence: tuple[str, ...]
    certainty: Certainty


def seen_programs(
    workloads: Iterable[RunningWorkload], leases: Leases, reporters: Iterable[str], now: float
) -> Iterator[DetectedProgram]:
    """The running programs with their evidence; ``reporters`` are names in the cluster's events."""
    runs, reported = tuple(workloads), frozenset(reporters)
    for program in PROGRAMS:
        sure = [
            f"{pod_of(lease.holder)} renews the lease {namespace}/{name}"
            for (namespace, name), lease in leases.items()
            if name == program.lease and is_renewed(lease, now)
        ]
        if program.reporter in reported:
            sure.append(f"the server has recent events of {program.reporter}")
        likely = []
        for each in runs:
            by_image = program.word in each.image_words
            if not by_image and program.word not in each.programs:
                continue
            if each.kind == "CronJob":
                likely.append(f"{each.text} starts it from time to time")
            elif each.ready:
                shown = (
                    f"{each.text} is ready" if each.kind == "Pod" else f"{each.text} has {each.ready} ready"
                )
                (sure if by_image else likely).append(shown)
        if sure or likely:
            certainty = Certainty.CERTAIN if sure else Certainty.LIKELY
            yield DetectedProgram(program, (*sure, *likely), certainty)


class ProgramActivity(Struct, frozen=True):
    """The decisions of our policies with which other programs could conflict.

    Attributes:
        serves: The serving policy by scheduler name.
        moves: Policies that evict pods.
        consolidates: Policies that empty nodes.
    """

    serves: Mapping[str, str]
    moves: tuple[str, ...]
    consolidates: tuple[str, ...]

    @classmethod
    def of(cls, policies: Iterable[SchedulingPolicy]) -> "ProgramActivity":
        """The decisions of policies that are in effect."""
        serves: dict[str, str] = {}
        moves, consolidates = [], []
        for policy in policies:
            name, spec = policy.metadata.name, policy.spec
            if spec.scheduling is not None:
                serves.setdefault(spec.scheduling.scheduler_name, name)
            if spec.rebalancing is not None and spec.rebalancing.mode is not Mode.DRY_RUN:
                moves.append(name)
                if any(
                    each.name in ("ConsolidateNodes", "DrainNodes") for each in spec.rebalancing.strategies
                ):
                    consolidates.append(name)
        return cls(serves, tuple(moves), tuple(consolidates))


def judged_programs(
    seen: Sequence[DetectedProgram], doing: ProgramActivity, unread: Iterable[Unread] = ()
) -> Iterator[Finding]:
    """Findings about other schedulers, deschedulers and autoscalers."""
    for each in seen:
        yield _judged(each, doing)
    missing = tuple(unread)
    if missing:
        yield unchecked(Area.SCHEDULERS, "other schedulers", *missing)
    if not seen and not missing:
        yield Finding(
            Area.SCHEDULERS,
            Level.OK,
            "other schedulers",
            "none is seen; a managed control plane may run one out of sight",
            certainty=Certainty.LIKELY,
        )


def _judged(seen: DetectedProgram, doing: ProgramActivity) -> Finding:
    match seen.program.work:
        case ProgramKind.PLACES:
            level, message, remedy = _placing(seen.program, doing)
        case ProgramKind.MOVES:
            level, message, remedy = _moving(doing)
        case ProgramKind.SCALES:
            level, message, remedy = _scaling(doing)
    runs = "is at work" if seen.certainty is Certainty.CERTAIN else "seems to be at work"
    rest = len(seen.evidence) - NAMED
    evidence = "; ".join(seen.evidence[:NAMED]) + (f"; and {rest} more" if rest > 0 else "")
    return Finding(
        Area.SCHEDULERS,
        level,
        seen.program.name,
        f"it {runs}, and {seen.program.work.value} ({evidence}){message}",
        remedy,
        seen.certainty,
    )


def _placing(program: Program, doing: ProgramActivity) -> tuple[Level, str, str]:
    name = program.scheduler_name
    if name in doing.serves:
        policy = doing.serves[name]
        both = f", serves schedulerName {name} by default, and policy {policy} serves it too"
        return (
            Level.ERROR,
            both,
            f"both place the same pods: stop it, or give policy {policy} another schedulerName",
        )
    if not doing.serves:
        return Level.OK, "; no policy places pods", ""
    apart = f"; it fills the same nodes, and no policy serves {name}" if name else "; it fills the same nodes"
    return Level.OK, f"{apart}; where both choose one node in one moment, the kubelet may refuse a pod", ""


def _moving(doing: ProgramActivity) -> tuple[Level, str, str]:
    if not doing.moves:
        return Level.OK, "; no policy evicts pods", ""
    both = f", and {_policies(doing.moves)} too: neither knows the other's limits and budgets"
    return Level.WARNING, both, "let one of them evict; plimsoll convert translates a DeschedulerPolicy"


def _scaling(doing: ProgramActivity) -> tuple[Level, str, str]:
    if doing.consolidates:
        both = f", and {_policies(doing.consolidates)} too: both choose nodes to empty, each for itself"
        return Level.WARNING, both, "let one of them consolidate"
    if not doing.moves:
        return Level.OK, "; no policy evicts pods", ""
    policies = _policies(doing.moves)
    return Level.OK, f"; where {policies} spreads pods, nodes that it wants to remove may be filled", ""


def _policies(names: Sequence[str]) -> str:
    return f"{agreeing(len(names), 'policy', 'policies')} {', '.join(names)}"
