"""The commands ``plimsoll approve`` and ``plimsoll reject``: answer moves that wait for approval."""

from typing import Annotated

from plimsoll.cli.output import print_lines
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import NAMESPACED, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb
from plimsoll.model.counted import agreeing, counted

#: The last line of the list of what waits.
HINT = "next: plimsoll approve NAME -n NAMESPACE, or --all; plimsoll reject likewise"

Names = Annotated[
    list[str] | None, Argument(metavar="RECORD", help="Records, as kubectl get plev lists them.")
]
Everything = Annotated[bool, Option("--all", help="Answer every move that waits for an answer.")]
Policy = Annotated[str, Option("--policy", help="Only what this policy proposes.")]


def approve(
    options: Options, names: Names = None, *, everything: Everything = False, policy: Policy = ""
) -> None:
    """Approve moves that wait for an answer.

    Without arguments, lists them. The same as the annotation plimsoll.dev/approved=true on their records. A
    record answers for its whole bundle.
    """
    _answer(options, tuple(names or ()), everything, policy, approved=True)


def reject(
    options: Options, names: Names = None, *, everything: Everything = False, policy: Policy = ""
) -> None:
    """Reject moves that wait for an answer.

    Without arguments, lists them. The same as the annotation plimsoll.dev/approved=false on their records. A
    record answers for its whole bundle.
    """
    _answer(options, tuple(names or ()), everything, policy, approved=False)


def _answer(
    options: Options, names: tuple[str, ...], everything: bool, policy: str, *, approved: bool
) -> None:
    from plimsoll.cli.callers import proposal_answers  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - likewise

    if names and everything:
        raise UserError("name records, or say --all")
    if options.all_namespaces and names:
        raise UserError("--all-namespaces goes with --all, not with names of records")
    question = proposal_answers.Question(options.where(), names, policy)
    where = f"namespace {question.namespace}" if question.namespace else "any namespace"
    if not names and not everything:
        rows = with_session(options, lambda session: proposal_answers.undecided(session, question))
        if not rows:
            print_lines([f"nothing waits for an answer in {where}"])
            return
        from plimsoll.cli.output import print_view  # noqa: PLC0415 - likewise
        from plimsoll.cli.tables import Table  # noqa: PLC0415 - likewise

        table = Table(("RECORD", "POD", "FROM", "TO", "POLICY", "REASON"), rows, folds=True)
        waits = agreeing(len(rows), "waits", "wait")
        print_view([f"{counted(len(rows), 'move')} {waits} for an answer in {where}", "", table, "", HINT])
        return
    lines = with_session(
        options, lambda session: proposal_answers.answer(session, question, approved=approved)
    )
    print_lines(lines or [f"nothing waits for an answer in {where}"])


APPROVE = Verb("approve", approve, NAMESPACED, completes="records")
REJECT = Verb("reject", reject, NAMESPACED, completes="records")
