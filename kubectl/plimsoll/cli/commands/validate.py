"""The command ``plimsoll validate``: reports which documents would be accepted, and why others would not."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from plimsoll.cli.output import print_answer
from plimsoll.cli.tables import Column, Table
from plimsoll.commands.errors import ExitCode, UserError
from plimsoll.commands.options import OUTPUT, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb

if TYPE_CHECKING:
    from plimsoll.inspection.validation import SubmittedDocument, Validation


def validate(
    options: Options,
    files: Annotated[
        list[Path] | None,
        Argument(metavar="FILE...", help="YAML or JSON files, folders of them, - for standard input."),
    ] = None,
    *,
    filename: Annotated[
        list[Path] | None,
        Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="A file or folder of documents, or - for standard input, as of kubectl apply.",
        ),
    ] = None,
) -> None:
    """Say whether the operator would accept documents, and why not.

    SchedulingPolicies are judged by the code behind the condition Accepted, together with the plugins and
    strategies that are installed here; other kinds of plimsoll.dev by their schema. Needs no cluster.

    Exit codes: 0 all accepted, 1 otherwise.
    """
    from plimsoll.cli.clusters import catalogue  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.validation import validated  # noqa: PLC0415 - likewise

    paths = [*(files or ()), *(filename or ())]
    if not paths:
        raise UserError("no file is named; write plimsoll validate FILE")
    found = validated(list(_submitted(paths)), catalogue(), datetime.now(UTC))
    print_answer(found, [_summary(found), "", _table(found)], options)
    if found.refused:
        raise Exit(ExitCode.FAILED)


def _submitted(paths: list[Path]) -> "Iterator[SubmittedDocument]":
    """The documents of files; an unreadable file becomes a document without content."""
    from plimsoll.cli.manifests import manifest_files, manifests_of  # noqa: PLC0415 - likewise
    from plimsoll.inspection.validation import SubmittedDocument  # noqa: PLC0415 - likewise

    for path in paths:
        for file in manifest_files(path):
            try:
                yield from (
                    SubmittedDocument(each.source, each.number, each.content) for each in manifests_of(file)
                )
            except UserError as exc:
                yield SubmittedDocument(str(file), 1, {}, exc.message)
            except OSError as exc:
                yield SubmittedDocument(str(file), 1, {}, f"it cannot be read: {exc.strerror}")


def _table(found: "Validation") -> Table:
    return Table(
        ["FILE", Column("DOCUMENT", right=True), "OBJECT", "VERDICT", Column("REASON", wide=True), "MESSAGE"],
        [
            (
                each.source,
                each.document,
                f"{each.kind}/{each.name}" if each.name else each.kind,
                each.verdict,
                each.reason,
                each.message,
            )
            for each in found.documents
        ],
        folds=True,
    )


def _summary(found: "Validation") -> str:
    return f"{found.accepted} accepted, {found.refused} refused, {found.skipped} skipped"


VERB = Verb("validate", validate, OUTPUT)
