"""The command ``plimsoll history``: past moves, their reasons and outcomes."""

from typing import Annotated

from plimsoll.cli.clusters import From, content_from
from plimsoll.cli.moments import moment_of, seconds_of
from plimsoll.cli.output import print_answer
from plimsoll.cli.reports import ReportFile
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import FORMATS, NAMESPACED, OUTPUT, Flag, Format, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb

Subject = Annotated[
    str | None,
    Argument(metavar="POD", help="[NS/]POD, old or new name, or [NS/]KIND/NAME of an owner; left out, all."),
]
Since = Annotated[
    str,
    Option(
        "--since",
        metavar="SINCE",
        help="Leave out what ended before: so long ago, or at a time of RFC 3339. Left out, 24h; all moves of"
        " a POD that is named.",
    ),
]
Until = Annotated[
    str,
    Option("--until", help="Leave out what was planned later than so long ago, or than a time of RFC 3339."),
]
Policy = Annotated[str, Option("--policy", help="Only moves of this policy.")]
Again = Annotated[str, Option("--again-within", help="List pods that were moved again sooner than this.")]


def history(
    options: Options,
    pod: Subject = None,
    *,
    since: Since = "",
    until: Until = "",
    policy: Policy = "",
    again_within: Again = "1h",
    report: ReportFile = None,
    from_: From = None,
) -> None:
    """Show what moved, why, how it ended, and what moved again.

    From the Eviction records of one namespace, or of all with -A; a policy's spec.rebalancing.records says
    how long it keeps them. The selector is for labels of records, such as plimsoll.dev/strategy. Durations
    are from planned to settled, or from approved where a move waited for that.
    """
    from plimsoll.cli.views.history import history_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.history.history import history_of  # noqa: PLC0415 - likewise
    from plimsoll.inspection.history.selection import MoveSubject, RecordSelection  # noqa: PLC0415 - likewise
    from plimsoll.inspection.recorded_moves import records_of  # noqa: PLC0415 - likewise
    from plimsoll.snapshots.content import RECORDS  # noqa: PLC0415 - likewise

    within_s, labels = seconds_of(again_within, "--again-within"), options.labels()
    since = since or ("" if pod else "24h")
    moment_of(since or "0s", "--since", 0.0)
    namespace = options.namespace if from_ and not options.all_namespaces else options.where()
    subject = MoveSubject.parsed(pod) if pod else None
    if pod and subject is None:
        raise UserError(f'"{pod}" is no pod and no owner; write [NAMESPACE/]POD or [NAMESPACE/]KIND/NAME')
    if subject is not None and subject.namespace:
        namespace = options.namespace_of(f"{pod}", subject.namespace)
    content = content_from(options, from_, only=(RECORDS,))
    now = content.taken
    selection = RecordSelection(
        until=moment_of(until, "--until", now) if until else now,
        namespace=namespace,
        labels=labels,
        policy=policy,
        since=moment_of(since, "--since", now) if since else None,
        subject=subject,
    )
    records = records_of(content).values()
    answer = history_of(records, selection, content.source, within_s)
    if report is not None:
        from plimsoll.cli.reports import history_report, write_report  # noqa: PLC0415 - for pages alone

        write_report(report, history_report(answer))
    print_answer(answer, history_view(answer, wide=options.output == Format.WIDE), options)


VERB = Verb(
    "history",
    history,
    (*NAMESPACED, Flag.SELECTOR, *OUTPUT, Flag.WATCH),
    (*FORMATS, Format.NAME),
    completes="pods",
)
