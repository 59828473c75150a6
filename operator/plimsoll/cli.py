"""The command line: ``plimsoll run``, ``plimsoll approve`` and others.

Each command imports what it needs.
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
def run(  # noqa: PLR0913 - typer reads the options from the parameters
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
    """Run the operator until SIGTERM: schedule and rebalance pods by the policies."""
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
        from plimsoll.kube.session.credentials import present_namespace  # noqa: PLC0415 - likewise
        from plimsoll.kube.session.errors import APIError  # noqa: PLC0415 - likewise
        from plimsoll.kube.session.session import connected  # noqa: PLC0415 - likewise

        if bool(names) == everything:
            raise typer.BadParameter("name records, or say --all; kubectl get plev -A lists them")
        if everywhere and (names or namespace):
            raise typer.BadParameter("--all-namespaces goes with --all, and with no --namespace")
        where = "" if everywhere else namespace or present_namespace(kubeconfig)

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


def main() -> None:
    """The console script."""
    app()
