"""The command ``plimsoll version`` and the flag ``--version``: print the version."""

import typer

import plimsoll
from plimsoll.cli.verbs import Verb


def version() -> None:
    """Print the version."""
    typer.echo(plimsoll.__version__)


VERB = Verb("version", version)
