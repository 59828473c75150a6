"""The command ``plimsoll replay``: replays a snapshot in virtual time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from plimsoll.cli.clusters import state_from
from plimsoll.cli.output import print_answer
from plimsoll.cli.reports import ReportFile
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import OUTPUT, Format, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb

if TYPE_CHECKING:
    from plimsoll.inspection.state import ClusterState

_LONGEST_S = 366 * 86_400.0

Source = Annotated[
    list[str],
    Argument(metavar="FILE...", help="Snapshots, or what kubectl get -o json printed, as --from takes."),
]
Policies = Annotated[
    list[Path] | None,
    Option("--policies", metavar="FILE", help="These policies instead of the snapshot's; repeatable."),
]
Against = Annotated[
    list[Path] | None,
    Option("--against", metavar="FILE", help="Replay with these as well, side by side; repeatable."),
]
Until = Annotated[str, Option("--until", metavar="DURATION", help="Virtual time, such as 90m or 24h.")]
Seed = Annotated[int, Option("--seed", help="Seed of the choice among equally good nodes.")]
Enforce = Annotated[bool, Option("--enforce", help="Make the moves of DryRun policies, too.")]


def replay(
    options: Options,
    files: Source,
    *,
    policies: Policies = None,
    against: Against = None,
    until: Until = "24h",
    seed: Seed = 0,
    enforce: Enforce = False,
    report: ReportFile = None,
) -> None:
    """Replay a snapshot in virtual time under policies.

    Pods arrive and are scheduled, policies run by their schedules, evicted pods are replaced: placements,
    evictions, pending times, utilisation. Nothing is written. docs/cli/replay.md says what is left out.
    """
    from plimsoll.cli.progress import progress  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.views.replay import replay_view  # noqa: PLC0415 - likewise
    from plimsoll.simulation.replay import ReplaySettings  # noqa: PLC0415 - likewise
    from plimsoll.simulation.report import replayed  # noqa: PLC0415 - likewise

    seconds = _seconds(until)
    state = state_from(options, files)
    states = [_with(state, policies or [])]
    if against:
        states.append(_with(state, against))
    setting = ReplaySettings(seconds, seed, enforce)
    with progress("virtual s") as bar:
        answer = replayed(states, setting, lambda label, done: bar(label, int(done), int(seconds)))
    if report is not None:
        from plimsoll.cli.reports import replay_report, write_report  # noqa: PLC0415 - for pages alone

        write_report(report, replay_report(answer))
    print_answer(answer, replay_view(answer), options)


def _seconds(until: str) -> float:
    """Convert a duration to virtual seconds.

    Raises:
        UserError: It is not a duration, is zero, or exceeds a year.
    """
    from plimsoll.api.schema.fields import duration_s  # noqa: PLC0415 - each command loads what it needs

    try:
        seconds = duration_s(until)
    except ValueError as exc:
        raise UserError(f"--until: {exc}") from exc
    if not 0 < seconds <= _LONGEST_S:
        raise UserError(f"--until: {until} is not between 1s and a year (8784h)")
    return seconds


def _with(state: "ClusterState", files: list[Path]) -> "tuple[str, ClusterState]":
    """The cluster with the policies of files instead of its own, and a label for it.

    Raises:
        UserError: A file has no SchedulingPolicy, or one is not accepted.
    """
    from plimsoll.cli.manifests import manifests  # noqa: PLC0415 - each command loads what it needs

    if not files:
        return "snapshot", state
    documents = []
    for path in files:
        found = [each.content for each in manifests([path]) if each.content.get("kind") == "SchedulingPolicy"]
        if not found:
            raise UserError(f"{path} has no SchedulingPolicy; give a file with one")
        documents += found
    with_them = state.with_policies(documents)
    for name, each in with_them.policies.items():
        if each.problem[1]:
            raise UserError(
                f"{', '.join(map(str, files))}: SchedulingPolicy {name} is not accepted: {each.problem[1]}"
            )
    return " ".join(path.name for path in files), with_them


VERB = Verb("replay", replay, OUTPUT, formats=(Format.TABLE, Format.JSON, Format.YAML))
