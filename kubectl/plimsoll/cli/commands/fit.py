"""The command ``plimsoll fit``: places the pods of manifests on a copy of the cluster."""

from pathlib import Path
from typing import Annotated

from click.exceptions import Exit

from plimsoll.cli.clusters import From, state_from
from plimsoll.cli.output import print_answer
from plimsoll.commands.errors import ExitCode, UserError
from plimsoll.commands.options import OUTPUT, SERVER, Flag, Format, Options
from plimsoll.commands.parameters import Option
from plimsoll.commands.verbs import Verb

Files = Annotated[
    list[Path],
    Option("--filename", "-f", metavar="FILE", help="Manifests of workloads; - for standard input."),
]
Replicas = Annotated[int | None, Option(minimum=0, help="How many pods, instead of the manifest's number.")]
Maximum = Annotated[bool, Option("--max", help="Find how many pods fit at most.")]
Most = Annotated[int, Option(minimum=1, help="Where --max ends its search.")]
Alone = Annotated[bool, Option("--alone", help="Leave out the pods that are pending already.")]
Within = Annotated[
    str,
    Option(
        metavar="LABEL",
        help="A node label whose value the pods of a group must share, such as that of the rack, whatever the"
        " group says.",
    ),
]
Preempt = Annotated[bool, Option("--preempt", help="Let the pods preempt others of lower priority.")]


def fit(  # noqa: PLR0913 - one parameter per option
    options: Options,
    *,
    files: Files,
    replicas: Replicas = None,
    maximum: Maximum = False,
    most: Most = 10_000,
    alone: Alone = False,
    preempt: Preempt = False,
    within: Within = "",
    from_: From = None,
) -> None:
    """Say how many pods of workloads fit, where, and what stops more.

    The pods are placed on a copy of the cluster, behind those that are pending already. Pods that start as a
    group are placed together, and what they would preempt is named. Nothing is written.
    Exit code 0: all fit. 2: not all fit. 1: error.
    """
    from plimsoll.cli.manifests import manifests  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.progress import progress  # noqa: PLC0415 - likewise
    from plimsoll.cli.views.fit import fit_view  # noqa: PLC0415 - likewise
    from plimsoll.inspection.manifests.documents import read_manifests  # noqa: PLC0415 - likewise
    from plimsoll.inspection.placement.fit import FitQuestion  # noqa: PLC0415 - likewise
    from plimsoll.inspection.placement.fit import fit as fit_of  # noqa: PLC0415 - likewise

    if maximum and replicas is not None:
        raise UserError("--max and --replicas exclude each other; give one of them")
    documents = [each.content for each in manifests(files)]
    state = state_from(options, from_)
    namespace = options.namespace or (not from_ and options.where()) or "default"
    workloads = read_manifests(documents, namespace, state.cluster.objects)
    question = FitQuestion(
        replicas, maximum=maximum, most=most, alone=alone, preempting=preempt, within=within
    )
    total = most if maximum else None
    with progress("pods") as bar:
        answer = fit_of(state, workloads, question, lambda done: bar("placing", done, total))
    print_answer(answer, fit_view(answer, wide=options.output == Format.WIDE), options)
    if not answer.fits:
        raise Exit(ExitCode.FOUND)


VERB = Verb("fit", fit, (*SERVER, Flag.NAMESPACE, *OUTPUT))
