r"""Measures one operator and two that share a cluster pool by pool (docs/how-to/many-operators.md).

    make bench-pools                                # both tables
    make bench-pools ARGS="--only borders --seeds 5"
    make bench-pools ARGS="--only bindings --programs FOLDER"    # a real control plane

*Borders*: owners of pods come and go in virtual time, each for one pool; the engine places them by the
policies that ``plimsoll pools`` writes. A pod waits at a border if its own pool has no room and another has.

*Bindings*: pods wait, then one operator or two are started. Pods per CPU second of the busiest process say
what the division gains; pods per second by the clock, of the middle half of the pods, say it only where the
API server is not the limit.
"""

import asyncio
import heapq
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from contestants import Contestant, Running, ours
from control_plane import api_server
from sightings import watching

from load import NAME, Load, a_node, a_pod, all_of, family
from plimsoll.api.v1alpha1 import SchedulingPolicy
from plimsoll.commands.parameters import Option, command_of
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Enabled, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Node, Pod, PodInfo, Registry
from plimsoll.kube.session.session import connected
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.policies.profiles import profile_config

LABEL = "pool"
POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"

#: Of a node, and of the pods that an owner may have, in thousandths of a CPU.
NODE_MILLI, POD_MILLI = 4_000, (250, 500, 1_000, 2_000)

#: Pods of an owner at most, and the mean time that it stays.
MOST_PODS, STAYS = 40, 100.0

#: Time before the first look, and until the last; there is one at each arrival.
WARM_UP, END = 3 * STAYS, 8 * STAYS

#: Seconds until operators have bound all pods, and in which they become idle afterwards.
PATIENCE_S, REST_S = 900.0, 6.0


def pool_policies(names: Sequence[str]) -> list[dict[str, Any]]:
    """What ``plimsoll pools`` writes."""
    command = [sys.executable, "-m", "plimsoll", "pools", "--label", LABEL, *names]
    written = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - our own
    return list(yaml.safe_load_all(written))


# -- borders ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Borders:
    """What was seen, in sums over the looks.

    Attributes:
        asked: CPU of the pods that exist, and of those that wait, in thousandths of the cluster's.
        at_border: Of those that wait, the ones that another pool has room for now.
    """

    looks: int = 0
    asked: float = 0.0
    waiting: float = 0.0
    at_border: float = 0.0

    def row(self) -> str:
        """In percent of the cluster's CPU, means over the looks."""
        return " | ".join(
            f"{100 * each / self.looks:.2f}" for each in (self.asked, self.waiting, self.at_border)
        )


def engine(cluster: Cluster, policy: Mapping[str, Any], seed: int) -> ProfileScheduler:
    """The scheduler of a policy."""
    spec = SchedulingPolicy.model_validate(policy).spec.scheduling
    assert spec is not None
    defaults = [Enabled(*each) for each in DEFAULT_PLUGINS.items()]
    profile = build_profile(profile_config(spec), Registry(IN_TREE), defaults)
    return ProfileScheduler(profile, cluster, choose=random.Random(seed).randrange)


def a_cluster(nodes: int, names: Sequence[str]) -> Cluster:
    """Nodes of equal size, divided evenly."""
    cluster = Cluster()
    room = {"cpu": f"{NODE_MILLI}m", "memory": "64Gi", "pods": "110"}
    for number in range(nodes):
        labels = {LABEL: names[number % len(names)], "kubernetes.io/hostname": f"node-{number}"}
        node = {"metadata": {"name": f"node-{number}", "labels": labels}, "status": {"allocatable": room}}
        cluster.set_node(convert(Node, node))
    return cluster


def owners(nodes: int, load: float, seed: int) -> Iterator[tuple[float, float, int, int]]:
    """When each comes, how long it stays, its number of pods and their CPU; a few have many."""
    rng = random.Random(seed)
    mean_milli = sum(min(MOST_PODS, 1 / (1 - share / 1000)) for share in range(1000)) / 1000
    mean_milli *= sum(POD_MILLI) / len(POD_MILLI)
    rate = load * nodes * NODE_MILLI / (mean_milli * STAYS)
    at = 0.0
    while True:
        at += rng.expovariate(rate)
        count = min(MOST_PODS, int(1 / (1 - rng.random())))
        yield at, rng.expovariate(1 / STAYS), max(1, count), rng.choice(POD_MILLI)


def borders(nodes: int, pools: int, load: float, seed: int) -> Borders:
    """Let owners come and go; each one's pods are for a pool that is drawn for it."""
    names = [f"p{number}" for number in range(pools)]
    cluster = a_cluster(nodes, names)
    engines = {each["metadata"]["name"]: engine(cluster, each, seed) for each in pool_policies(names)}
    free = {"spec": {"scheduling": {"schedulerName": "any"}}, "metadata": {"name": "any"}}
    anywhere, rng = engine(cluster, free, seed), random.Random(seed)
    waiting: dict[str, tuple[PodInfo, str, int]] = {}
    leaving: list[tuple[float, str, int]] = []
    there, seen = 0, Borders()
    for number, (at, stays, count, milli) in enumerate(owners(nodes, load, seed)):
        if at > END:
            return seen
        while leaving and leaving[0][0] <= at:
            _, uid, size = heapq.heappop(leaving)
            there -= size
            if waiting.pop(uid, None) is None:
                cluster.displace(uid)
        pool = rng.choice(names)
        for position in range(count):
            uid = f"pod-{number}-{position}"
            container = {"name": "main", "resources": {"requests": {"cpu": f"{milli}m"}}}
            pod = {
                "metadata": {"name": uid, "uid": uid, "namespace": "n"},
                "spec": {"containers": [container]},
            }
            waiting[uid] = cluster.templates.info(convert(Pod, pod)), pool, milli
            heapq.heappush(leaving, (at + stays, uid, milli))
            there += milli
        full: set[tuple[str, int]] = set()
        for uid, (info, pool_of, size) in list(waiting.items()):
            if (pool_of, size) in full:
                continue
            decision = schedule(engines[pool_of], info)
            if decision.outcome is AttemptOutcome.SCHEDULED:
                cluster.place(decision.pod, decision.node)
                del waiting[uid]
            else:
                full.add((pool_of, size))
        if at > WARM_UP:
            _look(seen, cluster, anywhere, waiting, there / (nodes * NODE_MILLI), nodes)
    raise AssertionError


def _look(
    seen: Borders,
    cluster: Cluster,
    anywhere: ProfileScheduler,
    waiting: Mapping[str, tuple[PodInfo, str, int]],
    asked: float,
    nodes: int,
) -> None:
    """Count what waits, and place on a fork what another pool has room for."""
    seen.looks += 1
    seen.asked += asked
    seen.waiting += sum(size for _, _, size in waiting.values()) / (nodes * NODE_MILLI)
    lent: list[str] = []
    full: set[int] = set()
    for uid, (info, _, size) in waiting.items():
        if size in full:
            continue
        decision = schedule(anywhere, info)
        if decision.outcome is AttemptOutcome.SCHEDULED:
            cluster.place(decision.pod, decision.node)
            seen.at_border += size / (nodes * NODE_MILLI)
            lent.append(uid)
        else:
            full.add(size)
    for uid in lent:
        cluster.displace(uid)


# -- bindings --------------------------------------------------------------------------------------------


def an_operator(kubeconfig: Path, pool: str) -> Contestant:
    """The operator of a pool; "" is the one without a name."""
    one = ours(kubeconfig, f"plimsoll-{pool}")
    own = ("--operator-name", pool, "--leader-elect-resource-name", f"plimsoll-{pool}") if pool else ()
    patient = (
        "--leader-elect-lease-duration",
        "120s",
        "--leader-elect-renew-deadline",
        "90s",
    )  # a busy server
    command = (*one.command, *patient, *own)
    return Contestant(one.label, one.scheduler_name, command, one.environment, one.metrics)


async def bindings(kubeconfig: Path, nodes: int, pods: int, pools: Sequence[str], folder: Path) -> str:
    """Bind all pods by one operator for each pool; a row of the table."""
    async with connected(kubeconfig) as session:
        load = Load(session)
        await load.install()
        await load.clean(nodes)
        await load.install()
        names = [*pools] or [""]
        alone: dict[str, Any] = {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": NAME},
            "spec": {"scheduling": {"schedulerName": "plimsoll-alone"}},
        }
        policies = pool_policies(pools) if pools else [alone]
        for policy in policies:
            await session.request("POST", POLICIES, policy)

        async def node(number: int) -> None:
            made = a_node(number)
            made["metadata"]["labels"][LABEL] = names[number % len(names)] or "none"
            await session.request("POST", "/api/v1/nodes", made)

        await all_of(node, range(nodes))
        titles = [each or "alone" for each in names]
        async with watching(session, NAME) as seen, AsyncExitStack() as stack:
            pattern = family("basic").measured

            async def pod(number: int) -> None:
                title, place = titles[number % len(titles)], number // len(titles)
                await load.pod(a_pod(f"{title}-{place:06}", pattern, f"plimsoll-{title}", place % 10))

            await all_of(pod, range(pods))
            running = {
                title: Running(an_operator(kubeconfig, name), folder / f"{title}.log")
                for title, name in zip(titles, names, strict=True)
            }
            for one in running.values():
                stack.callback(one.stop)

            async def started(title: str) -> float:
                await seen.until(lambda: seen.bound_by_prefix[title] > 0, PATIENCE_S)
                return running[title].cpu_s()

            before = await asyncio.gather(*map(started, titles))
            await seen.until(
                lambda: len(seen.bound) >= pods or not all(one.is_alive() for one in running.values()),
                PATIENCE_S,
            )
            await asyncio.sleep(REST_S)
            spent = [one.cpu_s() - start for one, start in zip(running.values(), before, strict=True)]
            peaks = [one.peak_mib() for one in running.values()]
            moments = sorted(seen.bound.values())
        for policy in policies:
            await session.request("DELETE", f"{POLICIES}/{policy['metadata']['name']}")
        await load.clean(nodes)
    half_s = moments[len(moments) * 3 // 4] - moments[len(moments) // 4]  # all operators are at work then
    return (
        f"| {len(names)} | {len(moments):,} of {pods:,} | {' + '.join(f'{each:.2f}' for each in spent)}"
        f" | {len(moments) / max(spent):,.0f} | {len(moments) / 2 / half_s:,.0f}"
        f" | {' + '.join(f'{each:,.0f}' for each in peaks)} |"
    )


def main(
    only: Annotated[str, Option(help="borders or bindings; left out: both.")] = "",
    nodes: Annotated[int, Option(help="Nodes.")] = 400,
    pods: Annotated[int, Option(help="Pods that are bound.")] = 4_000,
    seeds: Annotated[int, Option(help="Runs of each row of borders, with the same owners for each row.")] = 3,
    pairs: Annotated[int, Option(help="Runs of one operator and of two, in turn.")] = 3,
    programs: Annotated[Path | None, Option(help="Folder of etcd and kube-apiserver.")] = None,
) -> None:
    """Print the tables."""
    if only != "bindings":
        print("| Pools | CPU asked for, % | waits, % | of it at a border, % |\n| ---: | ---: | ---: | ---: |")
        for load in (0.7, 0.85, 0.95):
            for pools in (1, 2, 4, 8):
                total = Borders()
                for seed in range(seeds):
                    one = borders(nodes, pools, load, seed)
                    for field in ("looks", "asked", "waiting", "at_border"):
                        setattr(total, field, getattr(total, field) + getattr(one, field))
                print(f"| {pools} | {total.row()} |", flush=True)
    if only != "borders":
        print("\n| Operators | bound | CPU s | pods per CPU s of the busiest | pods/s | peak MiB |")
        print("| ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
        with tempfile.TemporaryDirectory() as temporary, api_server(programs, Path(temporary)) as kubeconfig:
            for _ in range(pairs):
                for pools_of in ((), ("red", "blue")):
                    print(
                        asyncio.run(bindings(kubeconfig, nodes, pods, pools_of, Path(temporary))), flush=True
                    )


if __name__ == "__main__":
    command_of(main)()
