"""The command ``plimsoll version`` and the flag ``--version``: print the version."""

import click

from plimsoll.commands.verbs import Verb
from plimsoll.version import __version__


def version() -> None:
    """Print the version."""
    click.echo(__version__)


VERB = Verb("version", version)
