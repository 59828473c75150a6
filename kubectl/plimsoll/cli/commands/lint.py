"""The command ``plimsoll lint``: finds workloads and budgets that cannot be placed or moved well."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click.exceptions import Exit

from plimsoll.cli.clusters import From, state_from
from plimsoll.cli.output import print_answer, print_lines
from plimsoll.commands.errors import ExitCode, UserError
from plimsoll.commands.options import NAMESPACED, OUTPUT, Flag, Format, Options
from plimsoll.commands.parameters import Option
from plimsoll.commands.verbs import Verb

if TYPE_CHECKING:
    from plimsoll.inspection.lint.subjects import LintedBudget, LintedObject, LintedWorkload, Neighbourhood

JUNIT, SARIF = "junit", "sarif"


def lint(
    options: Options,
    files: Annotated[
        list[Path] | None,
        Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Judge the workloads and budgets of manifests, not the cluster's; - for standard input.",
        ),
    ] = None,
    from_: From = None,
    offline: Annotated[
        bool, Option("--offline", help="Judge the manifests of -f without a cluster.")
    ] = False,
    rule: Annotated[
        list[str] | None, Option("--rule", metavar="ID", help="Apply this rule alone; repeatable.")
    ] = None,
    skip: Annotated[
        list[str] | None, Option("--skip", metavar="ID", help="Do not apply this rule; repeatable.")
    ] = None,
    fail_on: Annotated[
        str,
        Option(
            "--fail-on", help="Severity from which a finding makes the exit code 2: error, warning, info."
        ),
    ] = "warning",
) -> None:
    """Find workloads and budgets that cannot be placed or moved well.

    Every rule is described in docs/cli/lint.md.

    Exit codes: 0 nothing found, 1 not judged, 2 something found that is at least as bad as --fail-on.
    """
    from plimsoll.cli.views.lint import view_of  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.views.lint_reports import junit, sarif  # noqa: PLC0415 - likewise
    from plimsoll.inspection.lint.rule import Severity  # noqa: PLC0415 - likewise
    from plimsoll.inspection.lint.rules import lint as judged  # noqa: PLC0415 - likewise

    if fail_on not in list(Severity):
        raise UserError(f"--fail-on {fail_on}: it is no severity; use error, warning or info")
    if offline and (from_ or not files):
        raise UserError("--offline judges manifests without a cluster; name them with -f, without --from")
    rules = _chosen(rule or (), skip or ())
    around = _surroundings(options, files or [], from_, offline=offline)
    namespace = "" if files else options.namespace if from_ else options.where()
    found = judged(around, rules, _concern(options, namespace, has_files=bool(files)))
    severity = Severity(fail_on)
    if options.output == JUNIT:
        print_lines([junit(found, rules, severity)])
    elif options.output == SARIF:
        print_lines([sarif(found)])
    else:
        print_answer(found, view_of(found, namespace), options)
    if any(each.severity.rank >= severity.rank for each in found.findings):
        raise Exit(ExitCode.FOUND)


def _chosen(wanted: Sequence[str], skipped: Sequence[str]) -> list[str]:
    """The ids of the rules to apply."""
    from plimsoll.inspection.lint.rules import RULES  # noqa: PLC0415 - likewise
    from plimsoll.policies.conditions import near  # noqa: PLC0415 - likewise

    known = [each.id for each in RULES]
    for name in (*wanted, *skipped):
        if name not in known:
            raise UserError(f'there is no rule "{name}"{near(name, known)}; the rules are {", ".join(known)}')
    return [each for each in known if each not in skipped and (not wanted or each in wanted)]


def _surroundings(
    options: Options, files: list[Path], from_: list[str] | None, *, offline: bool
) -> "Neighbourhood":
    """The cluster, with the manifests if any are given."""
    from plimsoll.cli.manifests import manifests  # noqa: PLC0415 - likewise
    from plimsoll.inspection.lint.subjects import (  # noqa: PLC0415 - likewise
        nothing_known,
        of_cluster,
        with_manifests,
    )
    from plimsoll.model.decoding import DecodeError  # noqa: PLC0415 - likewise

    read = manifests(files)
    around = (
        nothing_known("no cluster was asked (--offline)")
        if offline
        else of_cluster(state_from(options, from_))
    )
    if not files:
        return around
    found: list[tuple[str, Any]] = []
    for each in read:
        try:
            with_manifests(nothing_known(""), [(each.source, each.content)], "default")
        except DecodeError as exc:
            raise UserError(f"{each.source}, document {each.number}: {exc}") from exc
        found.append((each.source, each.content))
    return with_manifests(around, found, options.namespace or "default")


def _concern(
    options: Options, namespace: str, *, has_files: bool
) -> "Callable[[LintedWorkload | LintedBudget | LintedObject], bool]":
    """Whether a workload or budget is in scope: of the files, else of the namespace; and selected by -l."""
    labels = options.labels()

    def concerns(subject: "LintedWorkload | LintedBudget | LintedObject") -> bool:
        if bool(subject.source) is not has_files or (namespace and subject.namespace != namespace):
            return False
        return labels.matches(_labels(subject))

    return concerns


def _labels(subject: "LintedWorkload | LintedBudget | LintedObject") -> dict[str, str]:
    from plimsoll.inspection.lint.subjects import LintedObject, LintedWorkload  # noqa: PLC0415 - likewise

    if isinstance(subject, LintedObject):
        return subject.metadata.labels
    return subject.pod.labels if isinstance(subject, LintedWorkload) else subject.document.metadata.labels


VERB = Verb("lint", lint, (*NAMESPACED, Flag.SELECTOR, *OUTPUT), (*Format, JUNIT, SARIF))
