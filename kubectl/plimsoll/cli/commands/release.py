"""The command ``plimsoll release``: hands pods that wait for a dead Plimsoll to default-scheduler."""

from typing import Annotated

from plimsoll.cli.output import print_lines
from plimsoll.commands.options import NAMESPACED, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb

Name = Annotated[str, Argument(metavar="SCHEDULER", help="The schedulerName of the pods, such as plimsoll.")]
Apply = Annotated[bool, Option("--apply", help="Evict the pods; left out, only say which.")]
Lease = Annotated[str, Option("--lease", help="Name of the operator's lease.")]


def release(options: Options, scheduler: Name, *, apply: Apply = False, lease: Lease = "plimsoll") -> None:
    """Hand pods that wait for a dead Plimsoll to default-scheduler.

    The scheduler of a pod cannot be changed, so a waiting pod is evicted and its owner makes it again. That
    is done only if it helps: no operator serves the name, no new pod gets it, the pod still has no node, and
    its owner does not name it itself. Budgets are kept; pods that run stay as they are.
    """
    from plimsoll.cli.callers import waiting_pods  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - likewise

    namespace = "" if options.all_namespaces else options.namespace
    wanted = waiting_pods.Release(scheduler, namespace, lease, is_applied=apply)
    print_lines(with_session(options, lambda session: waiting_pods.release(session, wanted)))


VERB = Verb("release", release, NAMESPACED)
