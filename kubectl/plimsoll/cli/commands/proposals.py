"""The commands ``plimsoll approve`` and ``plimsoll reject``: answer moves that wait for approval."""

from typing import Annotated

from plimsoll.cli.output import print_lines
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import NAMESPACED, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb

Names = Annotated[
    list[str] | None, Argument(metavar="RECORD", help="Records, as kubectl get plev lists them.")
]
Everything = Annotated[bool, Option("--all", help="Answer every move that waits for an answer.")]
Policy = Annotated[str, Option("--policy", help="Only what this policy proposes.")]


def approve(
    options: Options, names: Names = None, *, everything: Everything = False, policy: Policy = ""
) -> None:
    """Approve moves that wait for an answer.

    The same as the annotation plimsoll.dev/approved=true on their records. A record answers for its whole
    bundle.
    """
    _answer(options, tuple(names or ()), everything, policy, approved=True)


def reject(
    options: Options, names: Names = None, *, everything: Everything = False, policy: Policy = ""
) -> None:
    """Reject moves that wait for an answer.

    The same as the annotation plimsoll.dev/approved=false on their records. A record answers for its whole
    bundle.
    """
    _answer(options, tuple(names or ()), everything, policy, approved=False)


def _answer(
    options: Options, names: tuple[str, ...], everything: bool, policy: str, *, approved: bool
) -> None:
    from plimsoll.cli.callers import proposal_answers  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - likewise

    if bool(names) == everything:
        raise UserError("name records, or say --all; kubectl get plev -A lists them")
    if options.all_namespaces and names:
        raise UserError("--all-namespaces goes with --all, not with names of records")
    question = proposal_answers.Question(options.where(), names, policy)
    lines = with_session(
        options, lambda session: proposal_answers.answer(session, question, approved=approved)
    )
    where = f"namespace {question.namespace}" if question.namespace else "any namespace"
    print_lines(lines or [f"nothing waits for an answer in {where}"])


APPROVE = Verb("approve", approve, NAMESPACED, completes="records")
REJECT = Verb("reject", reject, NAMESPACED, completes="records")
