"""The operator and the scenes that end-to-end tests play on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.manifests import NAME, grants, grants_with, of_kind
from deploy.manifests import documents as installed
from e2e.door import Door, door, kubeconfig_for
from e2e.entitlement import address_of, entitled
from e2e.operator_process import Operator
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import Speaker, speaking
from plimsoll.api.v1alpha1 import KINDS
from roadstead import processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.door import Call
    from roadstead.clients import RunningCluster
    from roadstead.processes import Launch
    from roadstead.pytest_plugin import StartRoadstead

ROOT = Path(__file__).parents[2]
#: The variable that names a cluster to test on.
NAMED = "PLIMSOLL_E2E_KUBECONFIG"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@cache
def documents(folder: str) -> list[dict[str, Any]]:
    """The objects of all YAML files of a folder."""
    contents = [path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).glob("*.yaml"))]
    return [document for content in contents for document in yaml.load_all(content, yaml.CSafeLoader)]


async def define(speaker: Speaker) -> None:
    """Install the custom resource definitions and wait until they are served."""
    for definition in documents("crds"):
        await speaker.install(DEFINITIONS, definition)
    for kind in KINDS:
        path = f"/apis/plimsoll.dev/v1alpha1/{kind.definition.plural}"
        await eventually(
            lambda path=path: speaker.request("GET", path, limit="1"),  # type: ignore[misc] # a lambda that keeps a variable of the loop
            lambda answer: answer.status == 200,
        )


@pytest.fixture(scope="session")
def roadstead_process(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, launch_roadstead: Launch
) -> Iterator[RunningCluster]:
    """A cluster of these tests alone: the fixture ``roadstead`` of others would take the definitions away."""
    if os.environ.get(NAMED):
        yield request.getfixturevalue("roadstead_process")
        return
    folder = tmp_path_factory.mktemp("roadstead")
    with processes.running(folder, launch_roadstead, nodes=3, pod_groups=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kubeconfig(roadstead_process: RunningCluster) -> Path:
    """The kubeconfig of that cluster."""
    return roadstead_process.kubeconfig


@pytest.fixture(scope="session")
def defined(kubeconfig: Path) -> Path:
    """The kubeconfig of this session's cluster, once it serves our kinds."""

    async def prepare() -> None:
        async with speaking(kubeconfig) as somebody:
            await define(somebody)

    asyncio.run(prepare())
    return kubeconfig


@pytest.fixture
async def speaker(defined: Path) -> AsyncIterator[Speaker]:
    """Somebody who speaks to an API server that serves our kinds."""
    async with speaking(defined) as somebody:
        yield somebody


@pytest.fixture(scope="session")
def operator(defined: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The operator of this session, with credentials of its own where the environment names them.

    A test that ends it starts it again.
    """
    own = os.environ.get("PLIMSOLL_E2E_OPERATOR_KUBECONFIG")
    one = Operator(Path(own) if own else defined, tmp_path_factory.mktemp("operator") / "log")
    # On a machine with other work it may be held up for longer than 15 s, and all later tests need it.
    one.options = ("--leader-elect-lease-duration", "90s", "--leader-elect-renew-deadline", "60s")
    if own:  # the service account of deploy/ may hold a lease in its own namespace only
        one.options += ("--leader-elect-resource-namespace", "plimsoll")
    one.start().until_ready()
    yield one
    assert one.terminate() == 0, one.said()


@pytest.fixture
async def scene(operator: Operator, speaker: Speaker) -> AsyncIterator[Scene]:
    """A part of the cluster for one test; the operator runs."""
    assert operator.status is None, f"the operator has ended: {operator.said()[-4000:]}"
    one = await Scene(speaker).begin()
    yield one
    await one.end()
    assert operator.status is None, f"the operator has ended: {operator.said()[-4000:]}"


@pytest.fixture
def start_operator(tmp_path: Path) -> Iterator[Callable[..., Operator]]:
    """Start further operators, on clusters of their own."""
    started: list[Operator] = []

    def start(kubeconfig: Path, *options: str, **environment: str) -> Operator:
        log = tmp_path / f"operator-{len(started)}.log"
        one = Operator(kubeconfig, log, environment=environment, options=options)
        started.append(one)
        return one.start()

    yield start
    for one in started:
        one.kill()


Guarded = tuple[Scene, Door, Operator]

#: Starts an operator behind a door, by a role of deploy/ and the trouble that the door makes, if any.
StartGuarded = Callable[..., AbstractAsyncContextManager[Guarded]]


@pytest.fixture
def vacant(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The kubeconfig of a cluster without an operator: the named one, whose operator is ended meanwhile.

    Without a named one it is a development cluster of the test's own.
    """
    if NAMED not in os.environ:
        start: StartRoadstead = request.getfixturevalue("start_roadstead")
        yield start().kubeconfig
        return
    operator: Operator = request.getfixturevalue("operator")
    assert operator.terminate() == 0
    yield request.getfixturevalue("defined")
    operator.start().until_ready()


@pytest.fixture
def entitled_operator(
    vacant: Path, guarded: StartGuarded, start_operator: Callable[..., Operator], tmp_path: Path
) -> StartGuarded:
    """As ``guarded``; on a named cluster, where its API server judges what the overlay's rights allow."""

    @asynccontextmanager
    async def start(role: str, *, component: str = "") -> AsyncIterator[Guarded]:
        if NAMED not in os.environ:
            async with guarded(role, component=component) as found:
                yield found
            return
        server, tls = await address_of(vacant)
        async with (
            speaking(vacant) as speaker,
            entitled(speaker, vacant, role, component) as token,
            door(server, lambda _: True, tls) as entrance,
        ):
            entrance.is_judge = False
            scene = await Scene(speaker).begin()
            config = kubeconfig_for(tmp_path / "door", entrance.url, token)
            operator = start_operator(config, "--leader-elect-resource-namespace", NAME)
            try:
                yield scene, entrance, operator
            finally:
                await scene.end()

    return start


@pytest.fixture
def guarded(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator], tmp_path: Path
) -> StartGuarded:
    """Start an operator on its own cluster, behind a door that lets through what an overlay allows."""

    @asynccontextmanager
    async def start(
        role: str,
        trouble: Callable[[Call], str] | None = None,
        component: str = "",
        *,
        composite_groups: bool = False,
    ) -> AsyncIterator[Guarded]:
        cluster = start_roadstead(pod_groups=True, composite_groups=composite_groups)
        async with (
            speaking(cluster.kubeconfig) as speaker,
            door(cluster.plain_url, grants_with(role, component) if component else grants(role)) as entrance,
        ):
            entrance.policies = of_kind(installed(role), "ValidatingAdmissionPolicy")
            await define(speaker)
            scene = await Scene(speaker).begin()
            if trouble is not None:
                entrance.trouble = trouble
            operator = start_operator(kubeconfig_for(tmp_path / "door", entrance.url, cluster.token))
            yield scene, entrance, operator

    return start
