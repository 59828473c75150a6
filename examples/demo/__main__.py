"""Plays the demo: starts the processes, plays the scenario, judges it.

PYTHONPATH=examples python -m demo [--nodes 40] [--seed 1] [--trace FOLDER] [--devices] [--keep]
"""

import asyncio
import contextlib
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated

import aiohttp
import click
import yaml
from rich.console import Console
from rich.table import Table

from plimsoll.cli.shipped import examples
from plimsoll.commands.parameters import Option, command_of
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE

from .balance import could_run, moved_again
from .client import Client
from .devices import GPUS, TRAINING
from .installation import install_kinds
from .inventory import Inventory, TraceError, from_statistics, from_trace
from .processes import Process, ProcessError
from .scenario import Scenario, Story
from .screen import Screen, gpu_table, move_table, node_table
from .training_job import NODES, TrainingScenario, TrainingStory

#: Seconds for a process to be ready, and for the rebalancing to converge.
READY_S, MENDING_S = 30.0, 45.0

#: Seconds of the whole story; past it the demo ends with what it has.
WHOLE_S = 115.0

#: Reasons of pending pods that the summary shows.
REASONS_SHOWN = 5


async def play(inventory: Inventory, examples: Path, *, keep: bool, console: Console) -> int:
    """Play the story; the exit status.

    Args:
        inventory: What to build.
        examples: The folder of the example policies.
        keep: Leave everything running at the end, until interrupted.
        console: To show it on.
    """
    began = time.monotonic()
    async with _processes(console) as (client, kubeconfig, alive):
        with Screen(console) as screen:
            scenario = Scenario(client, screen, inventory, examples, alive)
            await _tell(scenario, began)
        status = judge(scenario.story, console, time.monotonic() - began)
        if keep:
            await _keep(kubeconfig, console)
        return status


async def play_training(examples: Path, *, keep: bool, console: Console) -> int:
    """Play the story of the GPUs; the exit status. The arguments are those of ``play``."""
    began = time.monotonic()
    nodes = ("--nodes", str(NODES), "--node-cpu", "32", "--node-memory", "256Gi", "--devices", str(GPUS))
    async with _processes(console, *nodes) as (client, kubeconfig, alive):
        with Screen(console) as screen:
            scenario = TrainingScenario(client, screen, examples, alive)
            await scenario.tell()
        status = judge_training(scenario.story, console, time.monotonic() - began)
        if keep:
            await _keep(kubeconfig, console)
        return status


@contextlib.asynccontextmanager
async def _processes(
    console: Console, *options: str
) -> AsyncIterator[tuple[Client, Path, Callable[[], None]]]:
    """A development cluster with an operator; a client, its kubeconfig, and a check that both still run.

    Args:
        console: To say what is awaited.
        options: Of the development cluster.
    """
    _end_by_signal()
    with tempfile.TemporaryDirectory(prefix="plimsoll-demo-") as folder:
        home = Path(folder)
        kubeconfig = home / "kubeconfig"
        async with Process(
            home / "roadstead.log", "roadstead", "--kubeconfig", str(kubeconfig), *options
        ) as cluster:
            console.print("- Starting a development cluster")
            await cluster.until_exists(kubeconfig, READY_S)
            async with _connected(kubeconfig) as client:
                # An operator that finds no PodGroups places nothing until it looks again, after a minute.
                console.print("- Installing Plimsoll's custom resources")
                await install_kinds(client)
                console.print("- Starting the operator")
                async with Process(
                    home / "operator.log",
                    *("plimsoll", "run", "--kubeconfig", str(kubeconfig), "--bind-address", "127.0.0.1"),
                    *("--metrics-port", "0", "--health-port", "0"),
                ) as operator:

                    def alive() -> None:
                        cluster.check()
                        operator.check()

                    yield client, kubeconfig, alive


def _end_by_signal() -> None:
    """Make SIGTERM and SIGINT unwind the story, so that its processes and its folder go with it."""
    task = asyncio.current_task()
    if task is not None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)


async def _tell(scenario: Scenario, began: float) -> None:
    await scenario.build()
    watch = asyncio.create_task(scenario.watch_budgets())
    try:
        await scenario.place()
        await scenario.drift()
        left = WHOLE_S - (time.monotonic() - began)
        await scenario.mend(max(5.0, min(MENDING_S, left - 10)))
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError, aiohttp.ClientError):
            await watch


def judge(story: Story, console: Console, seconds: float) -> int:
    """Print the summary, computed from what the API server listed; 0 only if all went well."""
    placed, drifted, mended = story.placed, story.drifted, story.mended
    if placed is None or drifted is None or mended is None:
        console.print("[red]The story was not told to its end.[/]")
        return 1
    registry = Registry(IN_TREE)
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name in registry]
    profile = build_profile(ProfileConfig("plimsoll"), registry, defaults)
    stranded = could_run(story.nodes, story.pods, profile)
    phases = Counter(record.get("status", {}).get("phase", "?") for record in story.records)
    strategies = Counter(record["spec"]["strategy"] for record in story.records)
    again = moved_again(story.records)
    violations = story.budgets.violations
    checks = {
        "fewer pods are where they may not be, or the balance improved": mended.badness < drifted.badness,
        "no PodDisruptionBudget was violated": not violations,
        "nothing is left pending that could run": not stranded,
        "no pod came back to the node it was moved from": not phases["Returned"],
        "no pod was moved twice": not again,
    }
    console.print(node_table(drifted, mended))
    spreads = " → ".join(f"{each.spread:.0f}" for each in (placed, drifted, mended))
    console.print(f"[bold]imbalance of cpu, lower is better: {spreads}[/]")
    console.print("  placed → drifted → mended; standard deviation in percentage points, open nodes\n")
    table = Table(title="Summary", title_justify="left", show_header=False)
    table.add_row("pods placed", f"{placed.bound} in {story.placing_s:.1f} s, {placed.pending} pending")
    table.add_row("evictions by strategy", _counts(strategies, "\n") or "none")
    table.add_row("evictions by phase", _counts(phases) or "none")
    table.add_row("moved again", str(len(again)))
    table.add_row(
        "budgets",
        f"{len(story.budgets.met)} watched, {story.budgets.seen} states judged, {len(violations)} violations",
    )
    table.add_row("pending at the end", f"{mended.pending}, of which {len(stranded)} could run")
    table.add_row("time", f"{seconds:.0f} s")
    console.print(table)
    _explain_pending(story, console)
    for sentence, holds in checks.items():
        console.print(f"{'[green]✓[/]' if holds else '[red]✗[/]'} {sentence}")
    for name in again[:REASONS_SHOWN]:
        console.print(f"  [red]{name} was moved again[/]")
    for violation in violations[:REASONS_SHOWN]:
        console.print(f"  [red]{violation}[/]")
    return 0 if all(checks.values()) else 1


def judge_training(story: TrainingStory, console: Console, seconds: float) -> int:
    """Print the summary of the story of the GPUs; 0 only if all went well."""
    violations = [*story.budgets.violations, *story.devices.violations]
    training = [node.node for node in story.after if set(node.users) == {TRAINING}]
    phases = Counter(record.get("status", {}).get("phase", "?") for record in story.records)
    missed = [
        pod["metadata"]["name"] for pod in story.pods if pod.get("status", {}).get("phase") != "Running"
    ]
    checks = {
        f"no node had {GPUS} free GPUs": bool(story.before)
        and all(node.free < GPUS for node in story.before),
        "the training job runs on all GPUs of one node": len(training) == 1 and bool(story.waited_s),
        "each moved pod runs again": bool(story.records) and set(phases) == {"Settled"} and not missed,
        "no GPU was given out twice": not story.devices.violations,
        "no PodDisruptionBudget was violated": not story.budgets.violations,
    }
    console.print(gpu_table(story.before, story.after))
    console.print(move_table(story.records))
    table = Table(title="Summary", title_justify="left", show_header=False)
    table.add_row(
        "training job", f"waited {story.waited_s:.1f} s, runs on {', '.join(training) or 'no node'}"
    )
    table.add_row("moves", _counts(phases) or "none")
    table.add_row("claims", f"{len(story.devices.claims)} watched, {story.devices.seen} states judged")
    table.add_row("budgets", f"{len(story.budgets.met)} watched, {story.budgets.seen} states judged")
    table.add_row("time", f"{seconds:.0f} s")
    console.print(table)
    for sentence, holds in checks.items():
        console.print(f"{'[green]✓[/]' if holds else '[red]✗[/]'} {sentence}")
    for violation in violations[:REASONS_SHOWN]:
        console.print(f"  [red]{violation}[/]")
    for name in missed[:REASONS_SHOWN]:
        console.print(f"  [red]{name} does not run[/]")
    return 0 if all(checks.values()) else 1


def _explain_pending(story: Story, console: Console) -> None:
    """Every pending pod's reason, in the scheduler's words, counted."""
    reasons = Counter(
        next(
            (
                str(condition.get("message", ""))
                for condition in pod.get("status", {}).get("conditions", [])
                if condition["type"] == "PodScheduled" and condition["status"] == "False"
            ),
            "no reason given",
        )
        for pod in story.pods
        if not pod["spec"].get("nodeName")
    )
    for reason, count in reasons.most_common(REASONS_SHOWN):
        console.print(f"  {count} pending: {reason}", markup=False)
    if len(reasons) > REASONS_SHOWN:
        console.print(f"  and {len(reasons) - REASONS_SHOWN} more reasons")


def _counts(counter: Counter[str], separator: str = ", ") -> str:
    return separator.join(f"{name} {count}" for name, count in counter.most_common())


@contextlib.asynccontextmanager
async def _connected(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client for the plain-text door of a development cluster."""
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))  # noqa: ASYNC240 - a small local file
    clusters = {each["name"]: each["cluster"]["server"] for each in config["clusters"]}
    server = next(url for url in clusters.values() if url.startswith("http://"))
    headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    async with aiohttp.ClientSession(server, headers=headers, read_bufsize=2**21) as session:
        yield Client(session)


async def _keep(kubeconfig: Path, console: Console) -> None:
    console.print(
        "\nStill running; end it with Ctrl-C. In another terminal:\n"
        f"  export KUBECONFIG={kubeconfig}\n"
        "  kubectl get evictions.plimsoll.dev -A\n"
        "  kubectl get spol,pods -A\n"
        "Rebalancing is suspended; this lets it go on:\n"
        """  kubectl patch spol rebalance --type merge -p '{"spec":{"suspend":false}}'""",
        highlight=False,
    )
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


def main(
    *,
    nodes: Annotated[int, Option(minimum=4, maximum=1000, help="Nodes of a made-up cluster.")] = 40,
    seed: Annotated[int, Option(help="Of the made-up cluster.")] = 1,
    trace: Annotated[
        Path | None, Option(help="A folder with the OpenB trace, to be built instead.", file_okay=False)
    ] = None,
    keep: Annotated[bool, Option(help="Leave everything running at the end.")] = False,
    devices: Annotated[
        bool, Option("--devices", help="Four nodes with GPUs: room is made for a training job.")
    ] = False,
) -> None:
    """Watch a cluster being placed, drifting out of balance and being mended; nothing else is needed."""
    try:
        if devices:
            story = play_training(examples(), keep=keep, console=Console())
        else:
            built = from_trace(trace) if trace else from_statistics(nodes, seed)
            story = play(built, examples(), keep=keep, console=Console())
        status = asyncio.run(story)
    except (TraceError, ProcessError) as exc:
        click.echo(f"demo: {exc}", err=True)
        raise click.exceptions.Exit(1) from exc
    except asyncio.CancelledError:
        status = 130  # interrupted before its end
    raise click.exceptions.Exit(status)


if __name__ == "__main__":
    command_of(main)()
