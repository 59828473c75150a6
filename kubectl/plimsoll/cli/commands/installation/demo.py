"""The command ``plimsoll demo``: runs the demo, which is a separate distribution."""

import gc
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from plimsoll.commands.errors import UserError
from plimsoll.commands.parameters import Option
from plimsoll.commands.verbs import Verb

#: The package of the distribution plimsoll-demo (examples/demo).
PACKAGE = "plimsoll_demo"


def demo(
    *,
    nodes: Annotated[int, Option(minimum=4, maximum=1000, help="Nodes of a made-up cluster.")] = 40,
    seed: Annotated[int, Option(help="Seed of the made-up cluster.")] = 1,
    trace: Annotated[
        Path | None, Option(help="A folder with the OpenB trace, to build instead.", file_okay=False)
    ] = None,
    keep: Annotated[bool, Option("--keep", help="Leave everything running at the end.")] = False,
    devices: Annotated[
        bool, Option("--devices", help="Four nodes with GPUs: room is made for a training job.")
    ] = False,
) -> None:
    """Watch a simulated cluster placed, drifting, mended.

    It needs no Kubernetes: cluster and operator run on this machine for about a minute.
    """
    if find_spec(PACKAGE) is None:
        raise UserError("the demo is not installed; it comes with the wheels plimsoll_demo and roadstead")
    gc.enable()  # it runs for a minute
    import_module(f"{PACKAGE}.__main__").main(nodes=nodes, seed=seed, trace=trace, keep=keep, devices=devices)


VERB = Verb("demo", demo)
