"""The command ``plimsoll convert``: configurations of descheduler and kube-scheduler become policies.

PodGroups become PodGroups of another kind, and queues those of one policy.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from plimsoll.cli.output import print_answer, print_lines
from plimsoll.cli.tables import terminal_width
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import OUTPUT, Format, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb

Files = Annotated[
    list[str] | None,
    Argument(
        metavar="FILE...",
        help="DeschedulerPolicy, KubeSchedulerConfiguration, a ConfigMap with one, PodGroups or queues; - is"
        " stdin.",
    ),
]
Filename = Annotated[
    list[str] | None,
    Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="A file or folder of documents, or - for standard input, as of kubectl apply.",
    ),
]
Keep = Annotated[
    bool,
    Option(
        "--keep-behaviour",
        help="Write the planner, limits and evictor that choose the same pods as before.",
    ),
]


Suspended = Annotated[
    bool,
    Option(
        "--suspended",
        help="Write policies that are suspended: kube-scheduler goes on, and forecasts expect its profiles.",
    ),
]

GroupsAs = Annotated[
    str,
    Option(
        "--groups-as",
        metavar="GROUP",
        help="API group of the PodGroups that are written: scheduling.k8s.io (the core API), plimsoll.dev,"
        " scheduling.x-k8s.io (scheduler-plugins), scheduling.volcano.sh or scheduling.run.ai (KAI).",
    ),
]


def convert(
    options: Options,
    files: Files = None,
    *,
    filename: Filename = None,
    keep_behaviour: Keep = False,
    suspended: Suspended = False,
    groups_as: GroupsAs = "scheduling.k8s.io",
) -> None:
    """Convert configurations of other schedulers, PodGroups and queues.

    What they become goes to stdout, the report about each field to stderr; for programs (-o) both are one
    document on stdout. Nothing is written to a cluster.
    """
    import yaml  # noqa: PLC0415 - each command loads what it needs

    from plimsoll.cli.clusters import catalogue  # noqa: PLC0415 - likewise
    from plimsoll.cli.views.convert import answer_of, report_lines, summary_of  # noqa: PLC0415 - likewise
    from plimsoll.inspection.catalogue import RebalancingJudge, SchedulingJudge  # noqa: PLC0415 - likewise
    from plimsoll.migration.conversion import convert_documents  # noqa: PLC0415 - likewise
    from plimsoll.migration.documents import read_documents  # noqa: PLC0415 - likewise
    from plimsoll.migration.group_conversion import FORMATS  # noqa: PLC0415 - likewise
    from plimsoll.model.kinds.objects import ClusterObjects  # noqa: PLC0415 - likewise
    from plimsoll.policies.judgement import PolicyChecks  # noqa: PLC0415 - likewise

    known = catalogue()
    checks = PolicyChecks(
        SchedulingJudge(known), RebalancingJudge(known, ClusterObjects(), datetime.now(UTC))
    )
    paths = [*(files or ()), *(filename or ())]
    if not paths:
        raise UserError("no file is named; write plimsoll convert FILE")
    documents = [each for file in paths for each in read_documents(_name(file), _content(file))]
    if groups_as not in FORMATS:
        raise UserError(f'--groups-as "{groups_as}" is unknown; give one of {", ".join(FORMATS)}')
    converted = convert_documents(
        documents,
        checks,
        set(known.plugins),
        keep_behaviour=keep_behaviour,
        groups_as=groups_as,
        suspended=suspended,
    )
    if options.output in (Format.JSON, Format.YAML):
        print_answer(answer_of(converted), (), options)
        return
    results = [dict(each) for each in (*converted.policies, *converted.groups)]
    print_lines([yaml.safe_dump_all(results, sort_keys=False, allow_unicode=True).rstrip()])
    width = terminal_width() if sys.stderr.isatty() else None
    lines = report_lines(converted, wide=options.output == Format.WIDE, width=width)
    sys.stderr.writelines(f"{line}\n" for line in (*lines, "", summary_of(converted)))


def _name(file: str) -> str:
    return "stdin" if file == "-" else file


def _content(file: str) -> bytes:
    from plimsoll.migration.documents import LONGEST_FILE  # noqa: PLC0415 - as above

    if file == "-":
        return sys.stdin.buffer.read(LONGEST_FILE + 1)
    with Path(file).open("rb") as opened:
        return opened.read(LONGEST_FILE + 1)


VERB = Verb("convert", convert, OUTPUT)
