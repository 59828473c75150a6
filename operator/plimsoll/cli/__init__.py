"""The command line; each command imports what it needs when it runs."""

from plimsoll.cli.commands import VERBS
from plimsoll.cli.commands.installation import version
from plimsoll.cli.verbs import application

app = application("A Kubernetes scheduler and descheduler in one operator.", VERBS, version.version)


def main() -> None:
    """The console script."""
    app()
