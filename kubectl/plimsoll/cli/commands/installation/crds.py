"""The command ``plimsoll crds``: prints or writes the custom resource definitions or the example policies."""

from pathlib import Path
from typing import Annotated

from plimsoll.cli.output import print_lines
from plimsoll.commands.parameters import Option
from plimsoll.commands.verbs import Verb


def crds(
    *,
    examples: Annotated[
        bool, Option("--examples", help="The example policies instead of the definitions.")
    ] = False,
    directory: Annotated[
        Path | None, Option("--directory", "-d", help="Write files into this folder.", file_okay=False)
    ] = None,
) -> None:
    """Print the custom resource definitions.

    To install or upgrade them: plimsoll crds | kubectl apply --server-side -f -
    """
    from plimsoll.api.crds import crd_files  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.shipped import example_policies  # noqa: PLC0415 - likewise

    files = example_policies() if examples else crd_files()
    if directory is None:
        print_lines(["---\n".join(files.values()).rstrip("\n")])
        return
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_text(content, encoding="utf-8")
        print_lines([str(directory / name)])


VERB = Verb("crds", crds)
