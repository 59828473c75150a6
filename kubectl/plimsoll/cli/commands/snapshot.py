"""The commands ``plimsoll snapshot save`` and ``plimsoll snapshot show``."""

from pathlib import Path
from typing import Annotated

from plimsoll.cli.clusters import From, content_from, state_from
from plimsoll.cli.output import print_answer
from plimsoll.commands.options import OUTPUT, SERVER, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb, VerbGroup

Target = Annotated[
    Path, Argument(metavar="FILE", help="The file to write, such as cluster.json.gz.", dir_okay=False)
]
Source = Annotated[
    list[str],
    Argument(metavar="FILE...", help="Snapshots, or what kubectl get -o json printed, as --from takes."),
]
Force = Annotated[bool, Option("--force", help="Overwrite the file.")]


def save(options: Options, file: Target, *, from_: From = None, force: Force = False) -> None:
    """Save the scheduling-relevant state of a cluster in one compressed file.

    Left out are secrets, environment, commands and whatever else no decision reads; names, labels and images
    stay. Only the file is written, complete or not at all.
    """
    from plimsoll.inspection.overview import saved  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.snapshots import file as files  # noqa: PLC0415 - likewise

    files.check_free(file, force=force)
    content = content_from(options, from_)
    size = files.save(content, file, force=force)
    answer = saved(content, str(file), size)
    print_answer(answer, [answer.sentence], options)


def show(options: Options, files: Source) -> None:
    """Show what a snapshot holds: from where, when, how much, how full, and what is missing.

    Dumps of kubectl are shown likewise.
    """
    from plimsoll.cli.views.snapshot import snapshot_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.overview import overview  # noqa: PLC0415 - likewise

    answer = overview(state_from(options, files))
    print_answer(answer, snapshot_view(answer), options)


VERB = VerbGroup(
    "snapshot",
    "Save the state of a cluster in a file, and show such files.",
    (Verb("save", save, (*SERVER, *OUTPUT)), Verb("show", show, OUTPUT)),
)
