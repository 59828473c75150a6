"""Cached requests of nominated pods equal recomputed ones."""

import gc
import random

import numpy as np
import pytest

from plimsoll.engine.nominated_requests import NominatedRequestsCache, ahead_on
from plimsoll.engine.nominator import LOG_LENGTH, Nominator
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo, Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod

PROFILE = build_profile(
    ProfileConfig("s"), Registry(IN_TREE), [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
)


def _pod(cluster: Cluster, name: str, rng: random.Random) -> PodInfo:
    requests = {f"example.com/r{rng.randrange(3)}": 1} if rng.random() < 0.1 else {}
    pod = a_pod(name, cpu=f"{rng.randint(1, 9)}00m", priority=rng.choice((0, 5, 5, 10)), requests=requests)
    return cluster.templates.info(pod)


def _assert_exact(kept: NominatedRequestsCache, cluster: Cluster, nominator: Nominator, pod: PodInfo) -> None:
    claims = kept.against(pod)
    expected = {
        row: there
        for name in nominator.by_node
        if (row := cluster.rows.get(name)) is not None
        and (there := ahead_on(cluster, nominator, row, pod.priority, but=pod.uid))
    }
    assert dict(claims.pods) == expected
    assert claims.rows.tolist() == sorted(expected)
    amounts = [
        sum(
            (
                np.resize(cluster.requests_row(each.requests), len(cluster.resources))
                for each in expected[row]
            ),
            np.zeros(len(cluster.resources), dtype=np.int64),
        ).tolist()
        for row in sorted(expected)
    ]
    assert claims.amounts.tolist() == amounts


@pytest.mark.parametrize("seed", range(20))
def test_kept_claims_say_what_is_true_now(seed: int) -> None:
    rng = random.Random(seed)
    cluster, nominator = Cluster(), Nominator()
    kept = NominatedRequestsCache(cluster, nominator)
    names = [f"n{number}" for number in range(8)]
    for name in names[:6]:
        cluster.set_node(a_node(name))
    pods = [_pod(cluster, f"p{number}", rng) for number in range(30)]
    for step in range(300):
        pod = rng.choice(pods)
        match rng.randrange(8):
            case 0 | 1 | 2:
                nominator.add(pod, rng.choice(names))  # also to nodes that are not known
            case 3:
                nominator.remove(pod.uid)
            case 4 if pod.uid not in cluster.pods:
                cluster.place(pod, rng.choice(names))  # also elsewhere than where it was nominated
            case 5:
                cluster.displace(pod.uid)
            case 6 if step % 5 == 0:
                cluster.set_node(
                    a_node(rng.choice(names), allocatable={f"example.com/r{rng.randrange(3)}": 4})
                )
            case 7 if step % 7 == 0:
                name = rng.choice(names)
                if name in cluster.rows:
                    cluster.remove_node(name)
        _assert_exact(kept, cluster, nominator, rng.choice(pods))


def test_a_reader_that_is_behind_the_log_looks_at_everything() -> None:
    cluster, nominator = Cluster(), Nominator()
    cluster.set_node(a_node("a"))
    cluster.set_node(a_node("b"))
    kept = NominatedRequestsCache(cluster, nominator)
    asking = cluster.templates.info(a_pod("asking"))
    first = cluster.templates.info(a_pod("first", cpu="1"))
    assert not kept.against(asking).pods
    nominator.add(first, "a")
    other = cluster.templates.info(a_pod("other", cpu="1"))
    for _ in range(LOG_LENGTH):
        nominator.add(other, "b")
        nominator.remove(other.uid)
    assert nominator.changed_since(0) is None
    assert dict(kept.against(asking).pods) == {cluster.rows["a"]: (first,)}


def test_what_was_said_does_not_change_afterwards() -> None:
    cluster, nominator = Cluster(), Nominator()
    cluster.set_node(a_node("a"))
    kept = NominatedRequestsCache(cluster, nominator)
    asking = cluster.templates.info(a_pod("asking"))
    before = kept.against(asking)
    nominator.add(cluster.templates.info(a_pod("first", cpu="1")), "a")
    assert kept.against(asking).pods
    assert not before.pods
    assert not len(before.rows)


def test_pods_are_forgotten_once_none_is_nominated() -> None:
    """They may be gone; who is decided next need not have the priority of those who asked."""
    cluster = Cluster()
    cluster.set_node(a_node("a"))
    scheduler = ProfileScheduler(PROFILE, cluster)
    first = cluster.templates.info(a_pod("first", cpu="1", priority=5))
    scheduler.nominator.add(first, "a")
    scheduler.filtered(cluster.templates.info(a_pod("asking")))
    assert _holders(first)
    scheduler.nominator.remove(first.uid)

    scheduler.filtered(cluster.templates.info(a_pod("next", priority=9)))

    assert not _holders(first)


def _holders(pod: PodInfo) -> list[object]:
    """What claims on nodes still name a pod."""
    return [each for each in gc.get_referrers(pod) if isinstance(each, tuple)]
