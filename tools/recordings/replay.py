"""Decides recorded cases again and compares everything: ``python -m recordings.replay FOLDER``.

Cases of kube-scheduler are compared here, those of descheduler in :mod:`recordings.descheduler_replay`.

For each mismatch one line names the case, the node, the plugin, what was expected and what came out; the last
line counts. What the recording marks as one of several acceptable answers is compared as a set. Cases whose
differences a later fix of upstream explains (:mod:`recordings.later_fixes`) are counted apart.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

import click

from plimsoll.commands.parameters import Argument, Option, command_of
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision, Evaluation
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import (
    CycleState,
    Nomination,
    PluginError,
    PodInfo,
    PreEnqueuePlugin,
    Registry,
    Snapshot,
    Status,
)
from plimsoll.framework.capabilities import GatesByObjects
from plimsoll.framework.extension_points import VictimSearch
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from recordings import descheduler_replay
from recordings.devices import differences, given_back, wrong_writes
from recordings.later_fixes import BY_RECORDING, LaterFix
from recordings.scheduler import Case, Situation, read_cases, situation

PREEMPTION = "DefaultPreemption"
SUBFOLDERS = ("scheduler", "dra", "descheduler")


@runtime_checkable
class TellsVolumes(Protocol):
    """A plugin that can say which volumes a pod's claims would get on a node."""

    def volumes_on(self, state: CycleState, snapshot: Snapshot, row: int) -> dict[str, str]:
        """Claim to volume, "" where one would be made."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference between what was recorded and what was decided.

    Attributes:
        case: The case's id.
        what: The field of the answer.
        expected: As recorded.
        got: As decided.
        node: The node it is about, if it is about one.
        plugin: The plugin it is about, if it is about one.
    """

    case: str
    what: str
    expected: object
    got: object
    node: str = ""
    plugin: str = ""

    def __str__(self) -> str:
        """One line."""
        node = f" node={self.node}" if self.node else ""
        plugin = f" plugin={self.plugin}" if self.plugin else ""
        return f"{self.case}{node}{plugin} {self.what}: expected {self.expected!r}, got {self.got!r}"


def compare(case: Case, given: Situation) -> Iterator[Mismatch]:
    """All differences of one case."""
    expected = case.expected
    scheduler, pod = given.scheduler, given.pod
    gate = next(
        (
            status.by(plugin.name)
            for plugin in scheduler.profile.pre_enqueue
            if not (status := _gate(plugin, pod, scheduler)).is_success
        ),
        None,
    )
    if gate is not None or pod.is_terminating:
        yield from _differ(case, "result", expected["result"], "skipped" if gate is None else "gated")
        yield from _differ(case, "preEnqueue", expected.get("preEnqueue"), gate and _status(gate))
        return
    decision = schedule(scheduler, pod)
    yield from _differ(case, "result", expected["result"], decision.outcome.value)
    # Without nodes nothing is evaluated.
    if (
        len(scheduler.cluster)
        and decision.outcome is not AttemptOutcome.ERROR
        and expected["result"] != "error"
    ):
        try:
            evaluation = scheduler.evaluate(pod)
            yield from _evaluation(case, evaluation)
            yield from _volumes(case, given, evaluation)
            yield from _devices(case, given, evaluation)
        except PluginError as exc:
            if "scoreError" not in expected:
                yield Mismatch(case.id, "evaluation", "no error", str(exc), plugin=exc.plugin)
    yield from _decision(case, decision)


def _gate(plugin: PreEnqueuePlugin, pod: PodInfo, scheduler: ProfileScheduler) -> Status:
    if isinstance(plugin, GatesByObjects):
        return plugin.pre_enqueue_on(pod, Snapshot(scheduler.cluster))
    return plugin.pre_enqueue(pod)


def _evaluation(case: Case, got: Evaluation) -> Iterator[Mismatch]:
    expected = case.expected
    rejected = None if got.pre_filter.is_success else _status(got.pre_filter)
    yield from _differ(case, "preFilter", expected.get("preFilter"), rejected)
    if rejected is None:
        recorded = expected.get("filter", {})
        statuses = {node: _status(status) for node, status in got.statuses.items()}
        for node in sorted({*recorded, *statuses}):
            ours, theirs = statuses.get(node), recorded.get(node)
            plugin = str((theirs or ours or {}).get("plugin", ""))
            yield from _differ(case, "filter", theirs, ours, node=node, plugin=plugin)
    yield from _differ(case, "feasible", expected.get("feasible", []), sorted(got.feasible))
    yield from _scores(case, got)


def _scores(case: Case, got: Evaluation) -> Iterator[Mismatch]:
    recorded: Mapping[str, Any] = case.expected.get("scores", {"plugins": [], "weights": [], "nodes": {}})
    table = got.scores
    theirs = dict(zip(recorded["plugins"], recorded["weights"], strict=True))
    ours = {} if table is None else dict(zip(table.plugins, table.weights, strict=True))
    if "scoreError" not in case.expected:
        yield from _differ(case, "score plugins", theirs, ours)
    if table is None:
        return
    for position, node in enumerate(got.feasible):
        if node not in recorded["nodes"]:
            continue
        total, normalized, raw = recorded["nodes"][node]
        points = dict(zip(recorded["plugins"], zip(raw, normalized, strict=True), strict=True))
        for plugin, raws, normals in zip(table.plugins, table.raw, table.normalized, strict=True):
            if plugin in points:
                pair = (int(raws[position]), int(normals[position]))
                yield from _differ(
                    case, "raw and normalised score", points[plugin], pair, node=node, plugin=plugin
                )
        yield from _differ(case, "total", total, int(table.totals[position]), node=node)


def _volumes(case: Case, given: Situation, got: Evaluation) -> Iterator[Mismatch]:
    """What each delayed claim would get on each feasible node, where a plugin can tell."""
    teller = next((each for each in given.scheduler.profile.filter if isinstance(each, TellsVolumes)), None)
    if teller is None:
        return
    snapshot = Snapshot(given.scheduler.cluster)
    for node in got.feasible:
        row = given.scheduler.cluster.rows[node]
        expected = case.expected.get("volumes", {}).get(node, {})
        volumes = teller.volumes_on(got.state, snapshot, row)
        yield from _differ(case, "volumes", expected, volumes, node=node, plugin="VolumeBinding")


def _devices(case: Case, given: Situation, got: Evaluation) -> Iterator[Mismatch]:
    """What the pod's claims would get, and what would be taken back for it."""
    found = [*differences(case.expected, given.scheduler.cluster, got)]
    found += wrong_writes(case.expected, given.scheduler.cluster, given.pod, got)
    if not got.feasible:
        found += given_back(case.expected, given.scheduler.cluster, got)
    for each in found:
        yield Mismatch(case.id, each.what, each.expected, each.got, each.node, "DynamicResources")


def _decision(case: Case, got: Decision) -> Iterator[Mismatch]:
    expected = case.expected
    hosts = expected.get("hosts", [])
    if hosts and got.node not in hosts:
        yield Mismatch(case.id, "host", hosts, got.node)
    if expected["result"] == "unschedulable":
        yield from _differ(case, "message", expected.get("message"), got.message)
        ours = sorted(got.diagnosis.plugins) if got.diagnosis else []
        theirs = sorted(expected.get("unschedulablePlugins", []))
        yield from _differ(case, "unschedulablePlugins", theirs, ours)
        yield from _preemption(case, got)


def _preemption(case: Case, got: Decision) -> Iterator[Mismatch]:
    """The nomination, and what preemption found node by node; ties are compared as sets."""
    recorded: Mapping[str, Any] = case.expected.get("preemption", {})
    nomination = got.nomination or Nomination()
    node, search = nomination.node, nomination.search
    acceptable = [case.expected.get("nominating")]
    if acceptable[0] and (acceptable[0] == "*" or recorded.get("orderDependent")):
        acceptable = recorded.get("selected") or sorted(recorded.get("candidates", {}))
    if node not in acceptable:
        yield Mismatch(case.id, "nominating", acceptable, node, plugin=PREEMPTION)
    if search is None:
        expected = {name for name in ("candidates", "statuses") if name in recorded}
        yield from _differ(case, "preemption", expected, set(), plugin=PREEMPTION)
        return
    yield from _differ(case, "eligible", recorded.get("eligible", False), True, plugin=PREEMPTION)  # noqa: FBT003
    yield from _candidates(case, search)
    if "selected" in recorded:
        yield from _differ(
            case, "selected", recorded["selected"], sorted(search.selected()), plugin=PREEMPTION
        )
    if "selected" in recorded and node:
        outranked = sorted(pod.key for pod in nomination.outranked)
        cleared = sorted(recorded.get("clearNominated", {}).get(node, []))
        yield from _differ(case, "clearNominated", cleared, outranked, node=node, plugin=PREEMPTION)


def _candidates(case: Case, search: VictimSearch) -> Iterator[Mismatch]:
    recorded: Mapping[str, Any] = case.expected.get("preemption", {})
    theirs, ours = recorded.get("candidates", {}), search.candidates()
    yield from _differ(case, "candidates", sorted(theirs), sorted(ours), plugin=PREEMPTION)
    for node in sorted({*theirs} & {*ours}):
        if "victims" not in theirs[node]:
            continue
        found = {
            "victims": [victim.key for victim in ours[node].victims],
            "pdbViolations": ours[node].violations,
        }
        yield from _differ(
            case, "victims", {"pdbViolations": 0, **theirs[node]}, found, node=node, plugin=PREEMPTION
        )
    refused, statuses = recorded.get("statuses", {}), search.statuses()
    for node in sorted({*refused, *statuses}):
        status = _status(statuses[node]) if node in statuses else None
        yield from _differ(case, "preemption status", refused.get(node), status, node=node, plugin=PREEMPTION)


def _status(status: Status) -> dict[str, object]:
    return {"plugin": status.plugin, "code": status.code.value, "reasons": sorted(status.reasons)}


def _differ(
    case: Case, what: str, expected: object, got: object, *, node: str = "", plugin: str = ""
) -> Iterator[Mismatch]:
    if expected != got:
        yield Mismatch(case.id, what, expected, got, node, plugin)


def judged(found: Sequence[Mismatch], case: str, fix: LaterFix | None) -> tuple[list[Mismatch], bool]:
    """The differences of a case that no later fix explains, and whether a fix explains all there are.

    Consequences of another decision, such as the total score or the node, name no plugin.
    """
    if fix is None:
        return list(found), False
    if not found:
        return [Mismatch(case, "difference", fix.about, "none", plugin=fix.plugin)], False
    left = [each for each in found if each.plugin not in ("", fix.plugin)]
    return left, not left


def replay(folder: Path, family: str | None = None) -> tuple[Counter[str], list[Mismatch], Counter[str]]:
    """Decide all cases of a folder.

    Returns:
        How many cases "passed" and how many are "explained" by a later fix, all other differences, and how
        many failed by family.

    Raises:
        FileNotFoundError: The folder has no recording, or none of that family.
    """
    registry = Registry(IN_TREE)
    counts, failed = Counter[str](), Counter[str]()
    mismatches: list[Mismatch] = []
    for case in read_cases(folder, family):
        found = list(compare(case, situation(case, registry, DEFAULT_PLUGINS)))
        found, is_explained = judged(found, case.id, BY_RECORDING.get(f"{folder.name}/{case.id}"))
        mismatches += found
        counts["explained"] += is_explained
        counts["passed"] += not found and not is_explained
        failed[case.family] += bool(found)
    return counts, mismatches, failed


def main(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The recordings.")],
    *,
    family: Annotated[str, Option(help="Only this family.")] = "",
) -> None:
    """Decide the recorded cases in FOLDER, or in its subfolders scheduler, dra and descheduler, again.

    A family is a file's name, or a subfolder's for all of its files.
    """
    inner = [folder / name for name in SUBFOLDERS if (folder / name).is_dir()]
    if family in SUBFOLDERS and folder / family in inner:
        inner, family = [folder / family], ""
    counts, mismatches, failed = Counter[str](), list[str](), Counter[str]()
    found = False
    for each in inner or [folder]:
        if not any(each.glob(f"{family or '*'}.jsonl.gz")):
            continue
        found = True
        right, wrong, by_family = _replayed(each, family or None)
        counts += right
        mismatches += wrong
        failed += Counter({f"{each.name}/{name}": count for name, count in by_family.items()})
    if not found:
        click.echo(f"{folder} holds no {family or '*'}.jsonl.gz; name a folder of recordings", err=True)
        raise click.exceptions.Exit(2)
    for mismatch in mismatches:
        click.echo(mismatch)
    absent = [name for name in DEFAULT_PLUGINS if name not in Registry(IN_TREE)]
    if absent and not descheduler_replay.holds_cases(folder):
        click.echo(f"left out, not there yet: {', '.join(absent)}")
    for name, count in sorted(failed.items()):
        click.echo(f"{name}: {count} failed")
    explained = f"{counts['explained']} explained by later fixes, " if counts["explained"] else ""
    click.echo(f"{counts['passed']} passed, {explained}{failed.total()} failed")
    raise click.exceptions.Exit(1 if mismatches else 0)


def _replayed(folder: Path, family: str | None) -> tuple[Counter[str], list[str], Counter[str]]:
    """Decide the cases of either kind."""
    if descheduler_replay.holds_cases(folder):
        passed, lines, failed = descheduler_replay.replay(folder, family)
        return Counter(passed=passed), lines, failed
    counts, mismatches, failed = replay(folder, family)
    return counts, [str(mismatch) for mismatch in mismatches], failed


app = command_of(main)

if __name__ == "__main__":
    app()
