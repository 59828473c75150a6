"""EvictionRequests over HTTP, against the development cluster: created, read, withdrawn, deleted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from plimsoll.app.machine.clock import SeededRandomness, SystemClock
from plimsoll.kube.eviction_requests import REQUESTER, PodEvictionRequester
from plimsoll.kube.session.session import connected
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.eviction_requests import EvictionRequest
from plimsoll.ports.writes import WriteOutcome
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import RememberingObserver
from roadstead.cluster import DevCluster, simulated_nodes

MIGRATOR = "acme.io/migrator"
REQUESTS, EVICTIONS = "evictionrequests.lifecycle.k8s.io", "evictions.lifecycle.k8s.io"


@pytest.fixture
async def cluster() -> AsyncIterator[Any]:
    """A cluster that does not offer the API yet."""
    async with DevCluster(nodes=simulated_nodes(1)) as one:
        yield one


@pytest.fixture
async def requester(cluster: DevCluster, tmp_path: Path) -> AsyncIterator[Any]:
    """Speaks to it."""
    cluster.write_kubeconfig(tmp_path / "kubeconfig")
    async with connected(tmp_path / "kubeconfig") as session:
        yield PodEvictionRequester(session, SystemClock(), SeededRandomness(1), RememberingObserver())


async def made(cluster: DevCluster, name: str = "vm") -> Pod:
    """A pod that names a responder."""
    spec = {
        "containers": [{"name": "app", "image": "app:1"}],
        "evictionResponders": [{"name": MIGRATOR, "priority": 10000}],
        "nodeName": "node-0001",
    }
    created = cluster.api.create("pods", {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    return convert(Pod, created)


async def until(
    requester: PodEvictionRequester, holds: Callable[..., Any], cluster: DevCluster
) -> EvictionRequest:
    """Our only request, once it is so; the controllers work in this very loop."""
    for _ in range(2000):
        await asyncio.sleep(0.005)
        _, listed = await requester.list()
        if listed and holds(listed[0]):
            return listed[0]
    pytest.fail(f"still {listed}; {cluster.api.list(EVICTIONS)}")


async def test_a_server_without_the_api_is_reported_as_such(requester: PodEvictionRequester) -> None:
    """404 of discovery, and of the list."""
    assert (await requester.offered()).verdict is WriteOutcome.GONE
    assert (await requester.list())[0].verdict is WriteOutcome.GONE
    assert (await requester.request(a_pod("vm", uid="u"), "r")).verdict is WriteOutcome.GONE


async def test_an_upgraded_server_offers_it(cluster: DevCluster, requester: PodEvictionRequester) -> None:
    """Discovery is asked each time."""
    assert not (await requester.offered()).is_done
    cluster.offer_eviction_requests()
    assert (await requester.offered()).is_done
    assert await requester.list() == (await requester.offered(), [])


async def test_a_request_is_ours_for_this_very_pod_and_made_once(
    cluster: DevCluster, requester: PodEvictionRequester
) -> None:
    """Name, uid, requester; a second time it is there already."""
    cluster.offer_eviction_requests()
    pod = await made(cluster)

    assert (await requester.request(pod, "vm-1")).is_done
    assert (await requester.request(pod, "vm-1")).is_done

    (document,) = cluster.api.list(REQUESTS)
    assert document["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "plimsoll"}
    assert document["spec"] == {
        "target": {"pod": {"name": "vm", "uid": pod.uid}},
        "requester": REQUESTER,
        "intent": "Eviction",
    }


async def test_a_request_of_the_name_that_is_not_ours_is_a_conflict(
    cluster: DevCluster, requester: PodEvictionRequester
) -> None:
    """Somebody else's is neither taken over nor changed."""
    cluster.offer_eviction_requests()
    pod = await made(cluster)
    theirs = {
        "metadata": {"name": "vm-1", "namespace": "default"},
        "spec": {
            "target": {"pod": {"name": "vm", "uid": pod.uid}},
            "requester": "acme.io/drain",
            "intent": "Withdrawn",
        },
    }
    before = cluster.api.create(REQUESTS, theirs)

    assert (await requester.request(pod, "vm-1")).verdict is WriteOutcome.CONFLICT
    assert (await requester.list())[1] == []
    assert cluster.api.get(REQUESTS, "default", "vm-1")["spec"] == before["spec"]


async def test_a_request_that_bears_our_label_and_is_somebody_elses_is_not_listed(
    cluster: DevCluster, requester: PodEvictionRequester
) -> None:
    """It would be withdrawn and deleted as a leftover."""
    cluster.offer_eviction_requests()
    pod = await made(cluster)
    labels = {"app.kubernetes.io/managed-by": "plimsoll"}
    target = {"pod": {"name": "vm", "uid": pod.uid}}
    spec = {"target": target, "requester": "acme.io/drain", "intent": "Eviction"}
    metadata = {"name": "theirs", "namespace": "default", "labels": labels}
    cluster.api.create(REQUESTS, {"metadata": metadata, "spec": spec})

    assert (await requester.list())[1] == []


async def test_progress_is_read_from_the_eviction_that_it_is_part_of(cluster: Any, requester: Any) -> None:
    """Whose turn it is, its report, when it is expected to end."""
    cluster.offer_eviction_requests()
    pod = await made(cluster)
    await requester.request(pod, "vm-1")
    request = await until(requester, lambda one: one.responder, cluster)
    assert (request.is_observed, request.is_final, request.responder) == (True, False, MIGRATOR)

    (eviction,) = cluster.api.list(EVICTIONS)
    told = {"message": "copying", "expectedCompletionTime": "2030-01-01T00:00:00Z"}
    responders = [
        {**one, **told} if one["name"] == MIGRATOR else one for one in eviction["status"]["responders"]
    ]
    cluster.api.update_status(
        EVICTIONS, {**eviction, "status": {**eviction["status"], "responders": responders}}
    )

    request = await until(requester, lambda one: one.said, cluster)
    assert (request.said, request.expected) == ("copying", 1_893_456_000.0)


async def test_withdrawn_by_us_it_fails_and_can_be_deleted(
    cluster: DevCluster, requester: PodEvictionRequester
) -> None:
    """The pod stays."""
    cluster.offer_eviction_requests()
    await requester.request(await made(cluster), "vm-1")
    request = await until(requester, lambda one: one.responder, cluster)

    assert (await requester.withdraw(request)).is_done
    request = await until(requester, lambda one: one.is_final, cluster)
    assert (request.is_withdrawn, request.failure) == (True, "CanceledDueToNoRequesters")
    assert (await requester.drop(request)).is_done
    assert (await requester.list())[1] == []
    assert (await requester.drop(request)).verdict is WriteOutcome.GONE
    assert cluster.api.find("pods", "default", "vm") is not None


async def test_a_pod_that_has_left_ends_it(cluster: DevCluster, requester: PodEvictionRequester) -> None:
    """TargetEvicted."""
    cluster.offer_eviction_requests()
    await requester.request(await made(cluster), "vm-1")
    await until(requester, lambda one: one.responder, cluster)
    cluster.api.delete("pods", "default", "vm", grace_seconds=0)
    (eviction,) = cluster.api.list(EVICTIONS)
    now = cluster.api.now()
    responders = [
        {**one, "completionTime": now} if one["name"] == MIGRATOR else one
        for one in eviction["status"]["responders"]
    ]
    cluster.api.update_status(
        EVICTIONS, {**eviction, "status": {**eviction["status"], "responders": responders}}
    )

    request = await until(requester, lambda one: one.is_final, cluster)
    assert (request.is_evicted, request.failure) == (True, "")


async def test_what_the_server_refuses_is_reported(
    cluster: DevCluster, requester: PodEvictionRequester
) -> None:
    """A request whose uid is not a UUID."""
    cluster.offer_eviction_requests()
    answer = await requester.request(a_pod("vm", uid="none"), "vm-1")
    assert answer.verdict is WriteOutcome.REFUSED
    assert "lowercase UUID" in answer.message


async def test_without_its_controller_it_is_not_taken_up(cluster: Any, requester: Any) -> None:
    """As Kubernetes 1.37.0 serves it."""
    cluster.offer_eviction_requests(controllers=False)
    await requester.request(await made(cluster), "vm-1")
    for _ in range(20):
        await asyncio.sleep(0.005)
    (request,) = (await requester.list())[1]
    assert (request.is_observed, request.is_final) == (False, False)


# -- the watch ---------------------------------------------------------------------------------------


async def seen(requester: Any, holds: Any) -> Any:
    """What the watch reports until ``holds`` says that it is enough."""
    reported, enough = [], asyncio.Event()

    def changed(changes: Any) -> None:
        reported.append(dict(changes))
        if holds(reported):
            enough.set()

    async with asyncio.timeout(60):
        watch = asyncio.create_task(requester.watch(changed))
        await asyncio.wait([watch, asyncio.create_task(enough.wait())], return_when=asyncio.FIRST_COMPLETED)
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
    return reported


async def test_the_watch_begins_with_all_of_ours_and_their_evictions(cluster: Any, requester: Any) -> None:
    """Nothing is reported before both are listed: a responder that is at work is not taken for missing."""
    cluster.offer_eviction_requests()
    await requester.request(await made(cluster), "vm-1")
    await until(requester, lambda one: one.responder, cluster)

    (first,) = await seen(requester, lambda reported: reported)

    assert {key: each.responder for key, each in first.items()} == {"default/vm-1": MIGRATOR}


async def test_the_watch_reports_progress_and_the_end(cluster: Any, requester: Any) -> None:
    """Of requests as of the Evictions that they are part of; None for one that is deleted.

    Each step waits for the report of the one before: changes that come together are reported as the latest.
    """
    cluster.offer_eviction_requests()
    pod = await made(cluster)
    requests: list[Any] = []
    news = asyncio.Event()

    def changed(changes: Any) -> None:
        requests.extend(one for key, one in changes.items() if key == "default/vm-1")
        news.set()

    async def told(holds: Any) -> Any:
        while not requests or not holds(requests[-1]):
            news.clear()
            await news.wait()
        return requests[-1]

    watch = asyncio.create_task(requester.watch(changed))
    async with asyncio.timeout(60):
        await requester.request(pod, "vm-1")
        request = await told(lambda one: one.responder)
        assert request.responder == MIGRATOR
        await requester.withdraw(request)
        await told(lambda one: one.is_final)
        await requester.drop(request)
        await told(lambda one: one is None)
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)

    assert all(one != next_one for one, next_one in pairwise(requests))


async def test_the_watch_reports_requests_of_ours_only(cluster: Any, requester: Any) -> None:
    """A request of others that bears our label would be withdrawn otherwise."""
    cluster.offer_eviction_requests()
    pod = await made(cluster)
    labels = {"app.kubernetes.io/managed-by": "plimsoll"}
    target = {"pod": {"name": "vm", "uid": pod.uid}}
    spec = {"target": target, "requester": "acme.io/drain", "intent": "Eviction"}
    metadata = {"name": "theirs", "namespace": "default", "labels": labels}
    cluster.api.create(REQUESTS, {"metadata": metadata, "spec": spec})
    await requester.request(pod, "ours")

    reported = await seen(requester, lambda reported: any("default/ours" in each for each in reported))

    assert {key for changes in reported for key in changes} == {"default/ours"}


async def test_the_watch_ends_where_the_api_is_not_served(requester: Any) -> None:
    """The caller asks for it again when it is."""
    answer = await requester.watch(lambda changes: pytest.fail(f"{changes} of nothing"))

    assert answer.verdict is WriteOutcome.GONE
