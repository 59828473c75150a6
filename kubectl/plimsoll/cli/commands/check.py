"""The command ``plimsoll check``: finds what is wrong with an installation."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from plimsoll.cli.output import print_answer
from plimsoll.cli.tables import Column, Table
from plimsoll.commands.errors import ExitCode, UserError
from plimsoll.commands.options import OUTPUT, SERVER, Format, Options
from plimsoll.commands.parameters import Option
from plimsoll.commands.verbs import Verb
from plimsoll.model.counted import counted

if TYPE_CHECKING:
    from plimsoll.check.answer import Check
    from plimsoll.cli.output import View

Account = Annotated[
    str,
    Option(
        "--as-service-account",
        metavar="NS/NAME",
        help="Review the rights of this ServiceAccount; left out, of the operator that is found.",
    ),
]
Self = Annotated[bool, Option("--self", help="Review your own rights, as the operator does.")]
Ports = Annotated[bool, Option("--ports", help="Find out whether the operator could listen here.")]
Address = Annotated[str, Option(help="Address for --ports.")]
MetricsPort = Annotated[int, Option(minimum=0, maximum=65535, help="Port of /metrics for --ports.")]
HealthPort = Annotated[int, Option(minimum=0, maximum=65535, help="Port of /healthz for --ports.")]
Strict = Annotated[bool, Option("--strict", help="Exit with 2 if there are warnings and no error.")]


def check(
    options: Options,
    *,
    as_service_account: Account = "",
    own: Self = False,
    ports: Ports = False,
    bind_address: Address = "0.0.0.0",  # noqa: S104 - the operator's default
    metrics_port: MetricsPort = 8081,
    health_port: HealthPort = 8080,
    strict: Strict = False,
) -> None:
    """Find what is wrong with an installation or missing in it.

    It looks at the server, definitions, rights, lease, policies, and other schedulers at work.

    Exits with 1 if there is an error; with --strict, with 2 if there are only warnings.
    """
    from plimsoll.check.answer import check_answer  # noqa: PLC0415 - likewise
    from plimsoll.check.checks import check as checked  # noqa: PLC0415 - likewise
    from plimsoll.check.review import Choice  # noqa: PLC0415 - likewise
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.preflight.ports import judged_ports  # noqa: PLC0415 - likewise

    choice = Choice(_account(as_service_account), own)
    wanted = {"/metrics": metrics_port, **({"/healthz": health_port} if health_port else {})} if ports else {}
    result = with_session(options, lambda session: checked(session, choice))
    answer = check_answer(result, *judged_ports(bind_address, wanted))
    if not result.is_reachable and options.output in {Format.TABLE, Format.WIDE}:
        first = answer.findings[0]
        raise UserError(f"{first.message}; {first.remedy}")
    print_answer(answer, _view(answer, wide=options.output == Format.WIDE), options)
    if answer.errors:
        raise Exit(ExitCode.FAILED)
    if answer.warnings and strict:
        raise Exit(ExitCode.FOUND)


def _account(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise UserError(f"--as-service-account: {text} is not NAMESPACE/NAME, such as plimsoll/plimsoll")
    return namespace, name


def _view(answer: "Check", *, wide: bool) -> "View":
    """The counts and what is open, then a row for each finding, the worst first; ok ones by area."""
    from plimsoll.preflight.findings import Certainty  # noqa: PLC0415 - each command loads what it needs

    order = {"error": 0, "warning": 1}
    findings = sorted(answer.findings, key=lambda each: order.get(each.level, 2))
    rows = [
        (each.level, each.area, each.subject, each.certainty, _sentence(each.message, each.remedy))
        for each in findings
        if wide or each.level in order
    ]
    fine = Counter(
        each.area for each in findings if each.level not in order and each.certainty != Certainty.OPEN
    )
    parts = (counted(answer.errors, "error"), counted(answer.warnings, "warning"), f"{fine.total()} ok")
    left = [each.message for each in findings if each.certainty == Certainty.OPEN]
    view: list[Table | str] = ["; ".join((", ".join(parts), *left))]
    if rows:
        columns = (
            Column("LEVEL", status=True),
            "AREA",
            Column("SUBJECT"),
            Column("CERTAINTY", wide=True),
            "FINDING",
        )
        view += ["", Table(columns, rows, folds=True)]
    if fine and not wide:
        areas = ", ".join(f"{count} of {area}" for area, count in fine.items())
        view += ["", f"ok, listed by -o wide: {areas}"]
    if answer.grants is not None:
        view.append(
            "What grants the missing rights: plimsoll check -o json | jq .grants | kubectl apply -f -"
        )
    return view


def _sentence(message: str, remedy: str) -> str:
    if not remedy:
        return message
    return f"{message} {remedy}" if message.endswith("?") else f"{message}; {remedy}"


VERB = Verb("check", check, (*SERVER, *OUTPUT))
