"""The commands ``plimsoll pause``, ``resume`` and ``run-now``: stop and continue moves, and start a run."""

from typing import Annotated

from plimsoll.cli.output import print_lines
from plimsoll.commands.options import SERVER, Flag, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb

Policies = Annotated[
    list[str] | None, Argument(metavar="POLICY", help="Policies; left out, the moves of all policies.")
]
Chosen = Annotated[list[str], Argument(metavar="POLICY", help="Policies to run.")]
Reason = Annotated[str, Option("--reason", help="Reason, for those who find it paused.")]
Lease = Annotated[str, Option("--lease", help="Name of the operator's lease.")]


def pause(
    options: Options, policies: Policies = None, *, reason: Reason = "", lease: Lease = "plimsoll"
) -> None:
    """Stop the moves of all policies, or suspend policies.

    Without a policy it presses the stop button: an annotation of the operator's namespace, that of its
    lease, which is looked up unless --namespace names it. No pod is moved then, and scheduling continues. A
    policy that is named gets spec.suspend: it moves nothing and schedules nothing.
    """
    _set(options, tuple(policies or ()), lease, paused=True, reason=reason)


def resume(options: Options, policies: Policies = None, *, lease: Lease = "plimsoll") -> None:
    """Continue what pause has stopped.

    Without a policy it releases the stop button; policies that are named are no longer suspended.
    """
    _set(options, tuple(policies or ()), lease, paused=False)


def run_now(options: Options, policies: Chosen) -> None:
    """Start a run of policies now, once.

    The same as a new value of the annotation plimsoll.dev/run. The schedule stays as it is.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - each command loads what it needs

    from plimsoll.cli.callers import pauses  # noqa: PLC0415 - likewise
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - likewise

    moment = datetime.now(UTC).isoformat()
    print_lines(with_session(options, lambda session: pauses.start(session, policies, moment)))


def _set(options: Options, policies: tuple[str, ...], lease: str, *, paused: bool, reason: str = "") -> None:
    from plimsoll.cli.callers import pauses  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - likewise

    if policies:
        lines = with_session(
            options, lambda session: pauses.suspend(session, policies, paused=paused, reason=reason)
        )
    else:
        operator = pauses.OperatorLease(options.namespace, lease)
        lines = with_session(
            options, lambda session: pauses.press(session, operator, paused=paused, reason=reason)
        )
    print_lines(lines)


FLAGS = (*SERVER, Flag.NAMESPACE)
PAUSE = Verb("pause", pause, FLAGS, completes="policies")
RESUME = Verb("resume", resume, FLAGS, completes="policies")
RUN_NOW = Verb("run-now", run_now, SERVER, completes="policies")
