"""The command ``plimsoll plan``: the moves that policies would make now."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click.exceptions import Exit

from plimsoll.cli.clusters import From, state_from
from plimsoll.cli.output import print_answer
from plimsoll.cli.reports import ReportFile
from plimsoll.commands.errors import ExitCode, UserError
from plimsoll.commands.options import FORMATS, OUTPUT, SERVER, Flag, Format, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb

if TYPE_CHECKING:
    from plimsoll.inspection.state import ClusterState

#: The values of ``--against`` other than a file.
LIVE = "live"

Names = Annotated[list[str] | None, Argument(metavar="POLICY", help="Policies; left out, all.")]
New = Annotated[
    Path | None,
    Option("--filename", "-f", help="Plan with the policies of this file instead of those of the same name."),
]
Against = Annotated[
    str, Option("--against", metavar="FILE|live", help="Show what differs from these policies' plans.")
]


def plan(
    options: Options,
    names: Names = None,
    *,
    filename: New = None,
    against: Against = "",
    report: ReportFile = None,
    from_: From = None,
) -> None:
    """Show what policies would move if they ran now.

    Each policy is planned by itself, by the operator's own code; nothing is written. The exit code is 2 if
    there is a move (with --against: if the moves differ), 0 if not, 1 after an error, or without a move if a
    policy has a plugin or strategy that is not installed here.
    """
    from plimsoll.cli.progress import progress  # noqa: PLC0415 - likewise
    from plimsoll.cli.views.plan import plan_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.plans.plans import plan_of  # noqa: PLC0415 - likewise
    from plimsoll.snapshots.content import POLICIES  # noqa: PLC0415 - likewise

    files = {path: _policies(path) for path in (filename, _file(against)) if path is not None}
    live = state_from(options, from_, needed=() if filename else (POLICIES,))
    if not filename and (why := live.content.missing.get(POLICIES)):
        raise UserError(
            f"{live.content.source}: its SchedulingPolicies are not known: {why}; give some with -f"
        )
    new, chosen = _with(live, filename, files), set(names or ())
    if unknown := sorted(chosen - set(new.policies)):
        known = ", ".join(new.policies) or "the cluster has no policy"
        raise UserError(f'there is no SchedulingPolicy "{unknown[0]}"; policies: {known}')
    named, compared = _names(files, filename), _names(files, _file(against))
    old = None
    if against:
        old = (against, _with(live, _file(against), files), chosen or compared or named)
    asked = chosen or named or compared
    with progress("steps", "planning"):
        answer = plan_of(new, asked, old)
    if report is not None:
        from plimsoll.cli.reports import plan_report, write_report  # noqa: PLC0415 - for pages alone

        write_report(report, plan_report(answer, new))
    print_answer(answer, plan_view(answer, wide=options.output == Format.WIDE), options)
    if answer.differs if against else answer.moves:
        raise Exit(ExitCode.FOUND)
    if any(each.unknown for name, each in new.policies.items() if not asked or name in asked):
        raise Exit(ExitCode.FAILED)


def _file(against: str) -> Path | None:
    return Path(against) if against and against != LIVE else None


def _policies(path: Path) -> list[Mapping[str, Any]]:
    """The SchedulingPolicies of a file.

    Raises:
        UserError: It has none.
    """
    from plimsoll.api.schema.resource import API_VERSION  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.manifests import manifests  # noqa: PLC0415 - likewise

    found = [
        each.content
        for each in manifests([path])
        if (each.content.get("apiVersion"), each.content.get("kind")) == (API_VERSION, "SchedulingPolicy")
    ]
    if not found:
        raise UserError(f"{path} has no SchedulingPolicy of {API_VERSION}; give a file with one")
    return found


def _names(files: Mapping[Path, list[Mapping[str, Any]]], path: Path | None) -> set[str]:
    from plimsoll.inspection.plans.plans import name_of  # noqa: PLC0415 - each command loads what it needs

    return {name_of(each) for each in files[path]} if path is not None else set()


def _with(
    live: "ClusterState", path: Path | None, files: Mapping[Path, list[Mapping[str, Any]]]
) -> "ClusterState":
    """The cluster with a file's policies, which replace those of the same names.

    Raises:
        UserError: A policy of the file is not accepted.
    """
    from plimsoll.inspection.plans.plans import replaced  # noqa: PLC0415 - each command loads what it needs

    if path is None:
        return live
    documents = [each.document for each in live.policies.values()]
    state = live.with_policies(replaced(documents, files[path]))
    for name in sorted(_names(files, path)):
        judged = state.policies[name]
        if sentence := judged.unknown:
            raise UserError(f"{path}: SchedulingPolicy {name} is {sentence}")
        if sentence := judged.problem[1]:
            raise UserError(f"{path}: SchedulingPolicy {name} is not accepted: {sentence}")
    return state


VERB = Verb("plan", plan, (*SERVER, *OUTPUT, Flag.WATCH), (*FORMATS, Format.NAME), completes="policies")
