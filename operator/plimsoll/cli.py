"""The command line: ``plimsoll run``, ``plimsoll approve``, ``plimsoll devcluster`` and others.

Each command imports what it needs, so the operator never loads the development cluster.
"""

from pathlib import Path
from typing import Annotated

import typer

import plimsoll

app = typer.Typer(
    name="plimsoll",
    help="A Kubernetes scheduler and descheduler in one operator.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(plimsoll.__version__)


@app.command()
def devcluster(
    *,
    kubeconfig: Annotated[
        Path, typer.Option(help="Where to write the kubeconfig, once requests are answered.", dir_okay=False)
    ],
    nodes: Annotated[
        int, typer.Option(min=0, max=10_000, help="How many simulated nodes to begin with.")
    ] = 0,
    node_cpu: Annotated[str, typer.Option(help="Their CPU, as a quantity.")] = "8",
    node_memory: Annotated[str, typer.Option(help="Their memory, as a quantity.")] = "32Gi",
    node_pods: Annotated[int, typer.Option(min=1, help="How many pods each takes.")] = 110,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 takes a free one.")
    ] = 0,
    controllers: Annotated[
        bool, typer.Option(help="Run the controllers (Deployments, Jobs, garbage, budgets, ...).")
    ] = True,
    kubelets: Annotated[
        bool, typer.Option(help="Run simulated kubelets on the nodes that ask for one.")
    ] = True,
    start_seconds: Annotated[
        float, typer.Option(min=0, help="The longest time from a pod being bound to its running.")
    ] = 0.2,
    longest_grace_seconds: Annotated[
        float,
        typer.Option(min=0, help="Deleted pods leave after their grace period, or after this if shorter."),
    ] = 1.0,
    heartbeats: Annotated[bool, typer.Option(help="Renew a Lease for each node every 10 s.")] = False,
    eviction_requests: Annotated[
        bool, typer.Option(help="Serve the alpha API lifecycle.k8s.io/v1alpha1 of Kubernetes 1.37.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(help="Further tokens to accept, one a line; read at each request.", dir_okay=False),
    ] = None,
) -> None:
    """Run a development cluster on loopback until SIGTERM: not a real one, nothing is kept, nothing runs.

    It answers like a Kubernetes 1.36 API server; containers are only pretended.
    """
    import asyncio  # noqa: PLC0415 - the operator never loads what only the development cluster needs

    try:
        from plimsoll.devcluster import cluster, quantities  # noqa: PLC0415 - likewise
        from plimsoll.devcluster import kubelets as simulated  # noqa: PLC0415 - likewise
    except ModuleNotFoundError as exc:
        if str(exc.name).partition(".")[0] not in {"cel_expr_python", "cryptography", "google"}:
            raise
        typer.echo(
            f"plimsoll devcluster: {exc.name} is not installed; pip install 'plimsoll[devcluster]'", err=True
        )
        raise typer.Exit(1) from exc

    try:
        quantities.milli(node_cpu), quantities.milli(node_memory)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    settings = simulated.KubeletSettings(
        start_s=(min(0.05, start_seconds), start_seconds),
        longest_grace_s=longest_grace_seconds,
        heartbeats=heartbeats,
    )
    one = cluster.DevCluster(
        nodes=cluster.simulated_nodes(nodes, cpu=node_cpu, memory=node_memory, pods=node_pods),
        controllers=controllers,
        kubelets=settings if kubelets else None,
        port=port,
        eviction_requests=eviction_requests,
        token_file=token_file,
    )
    asyncio.run(
        cluster.serve(one, kubeconfig, lambda url: typer.echo(f"{url} ready; kubeconfig: {kubeconfig}"))
    )


@app.command()
def run(
    *,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="The cluster; left out: in-cluster, or the default kubeconfig.", dir_okay=False),
    ] = None,
    bind_address: Annotated[str, typer.Option(help="Address of the endpoints below.")] = "0.0.0.0",  # noqa: S104 - probes come from outside the pod
    metrics_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of /metrics, /readyz and /healthz; 0: any.")
    ] = 8081,
    health_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the liveness probe /healthz; 0: none.")
    ] = 8080,
    log_format: Annotated[str, typer.Option(help="json or text.")] = "json",
    log_level: Annotated[str, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
    seed: Annotated[
        int | None, typer.Option(help="Seed of tie-breaks and jitter; left out, differs each time.")
    ] = None,
    leader_elect: Annotated[
        str, typer.Option(metavar="true|false", help="Decide and write only while holding the lease below.")
    ] = "true",
    leader_elect_lease_duration: Annotated[
        str, typer.Option(help="How long others wait after the leader's last renewal, such as 15s.")
    ] = "15s",
    leader_elect_renew_deadline: Annotated[
        str, typer.Option(help="How long a leader writes after its last renewal.")
    ] = "10s",
    leader_elect_retry_period: Annotated[
        str, typer.Option(help="Time between two attempts to get or renew the lease.")
    ] = "2s",
    leader_elect_resource_name: Annotated[str, typer.Option(help="Name of the Lease.")] = "plimsoll",
    leader_elect_resource_namespace: Annotated[
        str, typer.Option(help="Its namespace; left out: the pod's own, or kube-system outside of a cluster.")
    ] = "",
) -> None:
    """Run the operator until SIGTERM: place pods, and keep them well placed, as the policies say."""
    from pydantic import ValidationError  # noqa: PLC0415 - each command loads what it needs

    from plimsoll.app import process, settings  # noqa: PLC0415 - likewise

    try:
        chosen = settings.Settings.model_validate(
            {
                "kubeconfig": kubeconfig,
                "bind_address": bind_address,
                "metrics_port": metrics_port,
                "health_port": health_port,
                "log_format": log_format,
                "log_level": log_level.upper(),
                "seed": seed,
                "leader_elect": leader_elect,
                "leader_elect_lease_duration": leader_elect_lease_duration,
                "leader_elect_renew_deadline": leader_elect_renew_deadline,
                "leader_elect_retry_period": leader_elect_retry_period,
                "leader_elect_resource_name": leader_elect_resource_name,
                "leader_elect_resource_namespace": leader_elect_resource_namespace,
            }
        )
    except ValidationError as exc:
        first = exc.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise typer.BadParameter(f"{first['msg']}", param_hint=option) from exc
    raise typer.Exit(process.main(chosen))


def _answering(command: str, word: str) -> None:
    """Add a command that answers proposals with ``word``."""

    def run(
        names: Annotated[
            list[str] | None,
            typer.Argument(metavar="[RECORD]...", help="Records, as kubectl get plev lists them."),
        ] = None,
        *,
        namespace: Annotated[
            str, typer.Option("--namespace", "-n", help="Theirs; left out: that of the kubeconfig's context.")
        ] = "",
        everywhere: Annotated[
            bool, typer.Option("--all-namespaces", "-A", help="With --all: in all namespaces.")
        ] = False,
        everything: Annotated[bool, typer.Option("--all", help="Whatever waits for an answer.")] = False,
        policy: Annotated[str, typer.Option("--policy", help="Only what this policy proposes.")] = "",
        kubeconfig: Annotated[
            Path | None,
            typer.Option("--kubeconfig", envvar="KUBECONFIG", help="The cluster.", dir_okay=False),
        ] = None,
    ) -> None:
        import asyncio  # noqa: PLC0415 - each command loads what it needs

        from plimsoll.app import proposal_answers  # noqa: PLC0415 - likewise
        from plimsoll.kube.session.errors import APIError  # noqa: PLC0415 - likewise
        from plimsoll.kube.session.session import connected  # noqa: PLC0415 - likewise

        if bool(names) == everything:
            raise typer.BadParameter("name records, or say --all; kubectl get plev -A lists them")
        if everywhere and (names or namespace):
            raise typer.BadParameter("--all-namespaces goes with --all, and with no --namespace")
        where = "" if everywhere else namespace or proposal_answers.present_namespace(kubeconfig)

        async def say() -> None:
            async with connected(kubeconfig) as session:
                question = proposal_answers.Question(where, tuple(names or ()), policy)
                lines = await proposal_answers.answer(session, question, approved=word == "true")
            typer.echo("\n".join(lines or [f"nothing waits for an answer in {where or 'any namespace'}"]))

        try:
            asyncio.run(say())
        except (APIError, proposal_answers.ProposalError) as exc:
            typer.echo(f"plimsoll {command}: {exc}", err=True)
            raise typer.Exit(1) from exc

    verb = "Carry out" if word == "true" else "Call off"
    app.command(
        command,
        help=f"{verb} moves that wait for an answer, as plimsoll.dev/approved={word} on their records does.",
    )(run)


_answering("approve", "true")
_answering("reject", "false")


@app.command()
def demo(
    *,
    nodes: Annotated[int, typer.Option(min=4, max=1000, help="Nodes of a made-up cluster.")] = 40,
    seed: Annotated[int, typer.Option(help="Of the made-up cluster.")] = 1,
    trace: Annotated[
        Path | None, typer.Option(help="A folder with the OpenB trace, to be built instead.", file_okay=False)
    ] = None,
    examples: Annotated[
        Path, typer.Option(help="The folder of the example policies.", file_okay=False)
    ] = Path("examples"),
    keep: Annotated[bool, typer.Option(help="Leave everything running at the end.")] = False,
) -> None:
    """Watch a cluster being placed, drifting out of balance and being mended; nothing else is needed."""
    import asyncio  # noqa: PLC0415 - each command loads what it needs

    from rich.console import Console  # noqa: PLC0415 - likewise

    from plimsoll.demo import inventory, playing, processes  # noqa: PLC0415 - likewise

    if not examples.is_dir():
        raise typer.BadParameter(f"{examples} is no folder; run from the root of a checkout")
    try:
        built = inventory.from_trace(trace) if trace else inventory.from_statistics(nodes, seed)
        status = asyncio.run(playing.play(built, examples, keep=keep, console=Console()))
    except (inventory.TraceError, processes.ProcessError) as exc:
        typer.echo(f"plimsoll demo: {exc}", err=True)
        raise typer.Exit(1) from exc
    except asyncio.CancelledError:
        status = 130  # interrupted before its end
    raise typer.Exit(status)


def main() -> None:
    """The console script."""
    app()
