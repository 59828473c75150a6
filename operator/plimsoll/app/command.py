"""The command ``plimsoll run``: runs the operator."""

from pathlib import Path
from typing import Annotated

import click
from click.exceptions import Exit

from plimsoll.commands.parameters import Option
from plimsoll.commands.verbs import Verb


def run(  # noqa: PLR0913 - cli/parameters.py reads the options from the parameters
    *,
    kubeconfig: Annotated[
        Path | None,
        Option(help="The cluster; left out: in-cluster, or the default kubeconfig.", dir_okay=False),
    ] = None,
    bind_address: Annotated[
        str, Option(help="Address of /metrics, of the page and of the probes.")
    ] = "0.0.0.0",  # noqa: S104 - probes come from outside the pod
    metrics_port: Annotated[
        int, Option(minimum=0, maximum=65535, help="Port of /metrics, /readyz and /healthz; 0: any.")
    ] = 8081,
    health_port: Annotated[
        int, Option(minimum=0, maximum=65535, help="Port of the probes /healthz and /readyz; 0: none.")
    ] = 8080,
    log_format: Annotated[str, Option(help="Format of the log: json or text.")] = "json",
    log_level: Annotated[str, Option(help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
    seed: Annotated[
        int | None, Option(help="Seed of tie-breaks and jitter; left out, differs each time.")
    ] = None,
    event_loop: Annotated[
        str, Option(help="Event loop of the main thread: auto (uvloop where it is installed) or asyncio.")
    ] = "auto",
    http_client: Annotated[
        str, Option(help="Sends the writes: plimsoll (less CPU), or aiohttp as for reads.")
    ] = "plimsoll",
    plans: Annotated[
        str, Option(help="Where long plans are made: process (a fork of this one) or thread.")
    ] = "process",
    leader_elect: Annotated[
        str, Option(metavar="true|false", help="Decide and write only while holding the Lease.")
    ] = "true",
    leader_elect_lease_duration: Annotated[
        str, Option(help="How long others wait after the leader's last renewal, such as 15s.")
    ] = "15s",
    leader_elect_renew_deadline: Annotated[
        str, Option(help="How long a leader writes after its last renewal.")
    ] = "10s",
    leader_elect_retry_period: Annotated[
        str, Option(help="Time between two attempts to get or renew the lease.")
    ] = "2s",
    leader_elect_resource_name: Annotated[str, Option(help="Name of the Lease.")] = "plimsoll",
    leader_elect_resource_namespace: Annotated[
        str,
        Option(help="Namespace of the Lease; left out: the pod's own, or kube-system outside of a cluster."),
    ] = "",
    operator_name: Annotated[
        str,
        Option(
            help="Serve the policies whose label plimsoll.dev/operator has this name, and only place pods;"
            " left out: serve those without the label."
        ),
    ] = "",
    cluster_name: Annotated[
        str, Option(help="Name of the cluster in log lines, the audit log and notices.")
    ] = "",
    audit_log: Annotated[
        str,
        Option(metavar="FILE|-", help="Append finished records to FILE, as JSON lines; -: standard output."),
    ] = "",
    notify_url: Annotated[
        str, Option(help="Address that gets moves, stops and refusals as CloudEvents; left out: none.")
    ] = "",
    notify_token_file: Annotated[
        Path | None, Option(help="File with the bearer token for --notify-url.", dir_okay=False)
    ] = None,
    notify_per_minute: Annotated[
        int, Option(minimum=1, maximum=6000, help="Notices to --notify-url a minute, at most.")
    ] = 60,
    ui: Annotated[
        str, Option(metavar="true|false", help="Serve /ui on the metrics port: the operator, live.")
    ] = "false",
) -> None:
    """Run the operator until SIGTERM."""
    flags = dict(locals())

    from pydantic import ValidationError  # noqa: PLC0415 - each command loads what it needs

    from plimsoll.app import process, settings  # noqa: PLC0415 - likewise

    try:
        chosen = settings.Settings.model_validate({**flags, "log_level": log_level.upper()})
    except ValidationError as exc:
        first = exc.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise click.BadParameter(f"{first['msg']}", param_hint=option) from exc
    raise Exit(process.main(chosen))


VERB = Verb("run", run)


def watchdog(
    *,
    kubeconfig: Annotated[
        Path | None,
        Option(help="The cluster; left out: in-cluster, or the default kubeconfig.", dir_okay=False),
    ] = None,
    lease_name: Annotated[str, Option(help="Name of the operator's Lease.")] = "plimsoll",
    lease_namespace: Annotated[str, Option(help="Namespace of the Lease; left out: the pod's own.")] = "",
    operator_name: Annotated[
        str, Option(help="Name of the operator whose policies are withdrawn; left out, it has none.")
    ] = "",
    seconds: Annotated[
        int, Option("--for", minimum=1, help="Seconds to look at the Lease before the command ends.")
    ] = 55,
) -> None:
    """Withdraw the adoption of pods when no operator leads.

    It looks at the Lease every few seconds. If no process has renewed it for the time that it is valid, it
    sets the condition Ready of policies that adopt pods to False: new pods keep default-scheduler then. The
    operator writes the condition again when it leads. deploy/components/adoption runs this command each
    minute.
    """
    from plimsoll.app import watchdog as dog  # noqa: PLC0415 - each command loads what it needs

    click.echo(dog.main(kubeconfig, lease_namespace, lease_name, float(seconds), operator_name))


WATCHDOG = Verb("watchdog", watchdog)

#: The operator's commands, as those of the command line are listed.
VERBS = {
    "run": (":VERB", "Run the operator until SIGTERM."),
    "watchdog": (":WATCHDOG", "Withdraw the adoption of pods when no operator leads."),
}
