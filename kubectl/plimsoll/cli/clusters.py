"""Reads the cluster that a command is about: a live one, or files given with --from."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from plimsoll.commands.kept import keep
from plimsoll.commands.options import Options
from plimsoll.commands.parameters import Option

if TYPE_CHECKING:
    from plimsoll.inspection.catalogue import Catalogue
    from plimsoll.inspection.state import ClusterState
    from plimsoll.snapshots.content import SnapshotContent

#: New objects after which the collector looks for garbage: what a plan counts is kept, and has no cycles.
COLLECTED = 100_000

#: The option of commands that answer from a live cluster or from files.
From = Annotated[
    list[str] | None,
    Option(
        "--from",
        metavar="FILE",
        help="Answer from a snapshot instead of a live cluster; or from what kubectl get -o json printed"
        " (files, folders, - for standard input; repeatable).",
    ),
]


def content_from(
    options: Options,
    from_: str | Path | Sequence[str | Path] | None = None,
    only: Collection[str] = (),
    needed: Collection[str] = (),
) -> "SnapshotContent":
    """The state of the cluster that the options name, or of the files.

    Args:
        options: Name the cluster.
        from_: The files instead.
        only: Collections; none means all.
        needed: Collections that a live cluster must have, besides nodes and pods.

    Raises:
        UserError: The cluster cannot be read.
        SnapshotError: A file cannot be read.
    """
    import sys  # noqa: PLC0415 - each command loads what it needs

    if from_:
        from plimsoll.snapshots.reader import read  # noqa: PLC0415 - likewise

        content = read([from_] if isinstance(from_, str | Path) else from_, sys.stdin.buffer)
        return content.limited_to(only) if only else content
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - likewise
    from plimsoll.cli.progress import progress  # noqa: PLC0415 - likewise
    from plimsoll.snapshots.cluster_reader import read_cluster  # noqa: PLC0415 - likewise

    with progress() as bar:
        return with_session(options, lambda session: read_cluster(session, bar, only, needed))


def state_from(
    options: Options,
    from_: str | Path | Sequence[str | Path] | None = None,
    policies: Iterable[Mapping[str, Any]] | None = None,
    needed: Collection[str] = (),
) -> "ClusterState":
    """The cluster as the operator sees it, live or from files; ``policies`` replace its own.

    A live cluster must have the ``needed`` collections in addition to nodes and pods.

    Raises:
        UserError: The cluster cannot be read.
        SnapshotError: A file cannot be read.
    """
    import gc  # noqa: PLC0415 - each command loads what it needs

    from plimsoll.inspection.state import ClusterState  # noqa: PLC0415 - likewise

    gc.disable()  # the read objects live until the command ends
    keep()
    try:
        content = content_from(options, from_, needed=needed)
        state = ClusterState.of(content, policies, catalogue(), time.monotonic)
        keep(state)
        return state
    finally:
        gc.freeze()
        gc.set_threshold(COLLECTED, 20, 20)
        gc.enable()


def catalogue() -> "Catalogue":
    """The plugins and strategies that policies can name: in tree, and of installed packages."""
    from plimsoll.framework import Registry  # noqa: PLC0415 - likewise
    from plimsoll.framework.descheduling.registry import StrategyRegistry  # noqa: PLC0415 - likewise
    from plimsoll.inspection.catalogue import Catalogue  # noqa: PLC0415 - likewise
    from plimsoll.plugins import IN_TREE as PLUGINS  # noqa: PLC0415 - likewise
    from plimsoll.policies import extensions  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.ports.observer import Observer  # noqa: PLC0415 - likewise
    from plimsoll.strategies import IN_TREE as STRATEGIES  # noqa: PLC0415 - likewise

    plugins, strategies = Registry(PLUGINS), StrategyRegistry(STRATEGIES)
    extensions.load(extensions.PLUGINS, plugins.add, Observer())
    extensions.load(extensions.STRATEGIES, strategies.add, Observer())
    return Catalogue(plugins, strategies)
