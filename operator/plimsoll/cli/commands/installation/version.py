"""The command ``plimsoll version`` and the flag ``--version``: print the version."""

import plimsoll
from plimsoll.cli.output import print_lines
from plimsoll.cli.verbs import Verb


def version() -> None:
    """Print the version."""
    print_lines([plimsoll.__version__])


VERB = Verb("version", version)
