"""The command ``roadstead`` runs a development cluster on loopback until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from pathlib import Path

import roadstead
from roadstead.schemas import quantities

_DESCRIPTION = """\
Run a Kubernetes 1.36 API server with controllers and simulated kubelets on loopback until SIGTERM.
All state is in memory, and containers are only pretended.
The kubeconfig is written once requests are answered.
"""


def _number(low: int, high: int) -> Callable[[str], int]:
    """Build the type of an option that accepts a whole number from ``low`` to ``high``."""

    def number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not in the range {low} to {high}")
        return value

    return number


def _seconds(text: str) -> float:
    """Parse a non-negative number of seconds."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return value


def _quantity(text: str) -> str:
    """Validate a quantity, and return it unchanged."""
    try:
        quantities.milli(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="roadstead", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, switch = parser.add_argument, argparse.BooleanOptionalAction
    add("--version", action="version", version=roadstead.__version__)
    add("--kubeconfig", type=Path, required=True, metavar="FILE", help="where to write the kubeconfig")
    add("--port", type=_number(0, 65535), default=0, help="port on 127.0.0.1 (0: any free one)")
    add("--nodes", type=_number(0, 10_000), default=0, help="number of simulated nodes to begin with")
    add("--node-cpu", type=_quantity, default="8", help="their CPU, as a quantity (8)")
    add("--node-memory", type=_quantity, default="32Gi", help="their memory, as a quantity (32Gi)")
    add("--node-pods", type=_number(1, 1_000_000), default=110, help="the pods that each takes (110)")
    add("--devices", default="", help="their devices: 8, or count=8,model=h100,memory=80Gi,numa=2 (none)")
    add("--server-only", action="store_true", help="neither controllers nor kubelets nor metrics")
    add(
        "--controllers",
        nargs="?",
        const="*",
        default="*",
        metavar="NAMES",
        help="as kube-controller-manager names them: '*' for all, '*,-job' for all but one",
    )
    add("--no-controllers", dest="controllers", action="store_const", const="", help="run none")
    add("--scheduler", action=switch, default=False, help="bind the pods of default-scheduler")
    add(
        "--storage-class",
        default="",
        metavar="NAME",
        help="a default storage class, and volumes for it (none)",
    )
    add("--kubelets", action=switch, default=True, help="on nodes with roadstead.test/kubelet: simulated")
    add("--start-seconds", type=_seconds, default=0.2, help="longest time from bound to Running (0.2)")
    add(
        "--longest-grace-seconds",
        type=_seconds,
        default=1.0,
        help="deleted pods leave after their grace period, or after this if it is shorter (1)",
    )
    add(
        "--event-ttl-seconds",
        type=_seconds,
        default=3600.0,
        help="Events are deleted so long after they were last written (3600)",
    )
    add(
        "--pod-groups",
        action=switch,
        default=False,
        help="serve PodGroups and Workloads of scheduling.k8s.io/v1alpha2",
    )
    add(
        "--composite-groups",
        action=switch,
        default=False,
        help="serve them, and CompositePodGroups, in v1alpha3 instead",
    )
    add(
        "--job-groups",
        action=switch,
        default=False,
        help="with --pod-groups: Jobs whose pods need one another get a Workload and a PodGroup",
    )
    add("--heartbeats", action=switch, default=False, help="renew a Lease for each node every 10 s")
    add(
        "--authorization-mode",
        choices=("AlwaysAllow", "RBAC"),
        default="AlwaysAllow",
        help="AlwaysAllow: every client may do everything (the default); RBAC: what roles and bindings say",
    )
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="further tokens to accept, one a line; read at each request",
    )
    return parser


def main() -> None:
    """Read the command line and serve until SIGTERM or SIGINT."""
    parser = _parser()
    options = parser.parse_args()
    from roadstead.cluster import DevCluster, serve, simulated_nodes  # noqa: PLC0415 - loads much; --help does not wait
    from roadstead.controllers import chosen  # noqa: PLC0415 - likewise
    from roadstead.kubelets.devices import devices_of  # noqa: PLC0415 - likewise
    from roadstead.kubelets.kubelets import KubeletSettings  # noqa: PLC0415 - likewise

    if options.devices:
        try:
            devices_of(options.devices)
        except ValueError as error:
            parser.error(f"argument --devices: {error}")

    try:
        chosen(options.controllers)
    except ValueError as error:
        parser.error(f"argument --controllers: {error}")

    settings = KubeletSettings(
        start_s=(min(0.05, options.start_seconds), options.start_seconds),
        longest_grace_s=options.longest_grace_seconds,
        heartbeats=options.heartbeats,
    )
    cluster = DevCluster(
        nodes=simulated_nodes(
            options.nodes,
            cpu=options.node_cpu,
            memory=options.node_memory,
            pods=options.node_pods,
            devices=options.devices,
        ),
        controllers="" if options.server_only else options.controllers,
        scheduler=options.scheduler and not options.server_only,
        storage_class=options.storage_class,
        kubelets=settings if options.kubelets and not options.server_only else None,
        port=options.port,
        token_file=options.token_file,
        authorization=options.authorization_mode,
        event_ttl_s=options.event_ttl_seconds,
        pod_groups=options.pod_groups,
        composite_groups=options.composite_groups,
        job_groups=options.job_groups,
    )
    path: Path = options.kubeconfig
    asyncio.run(serve(cluster, path, lambda url: print(f"{url} ready; kubeconfig: {path}", flush=True)))  # noqa: T201 - the command's answer


if __name__ == "__main__":
    main()
