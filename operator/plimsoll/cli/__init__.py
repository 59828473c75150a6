"""The command line; each command imports what it needs when it runs."""

import gc
import os

import plimsoll
from plimsoll.cli.commands import VERBS, load
from plimsoll.cli.verbs import application

app = application(
    "A Kubernetes scheduler and descheduler in one operator.",
    {name: summary for name, (_, summary) in VERBS.items()},
    load,
    plimsoll.__version__,
)


def main() -> None:
    """The console script.

    What a command imports lives as long as the command, and a collector would look through it a dozen times.
    Commands that read a cluster, or that run for long, enable the collector. Libraries that are imported
    later start no threads for products of large matrices, which we have none of, and do not search all
    packages for extensions of models.
    """
    gc.disable()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    app()
