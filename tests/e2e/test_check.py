"""``plimsoll check``, the command itself, against development clusters in all states of an installation."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from deploy.manifests import NAME, rendered, run
from e2e.conftest import DEFINITIONS, define
from e2e.conftest import documents as files
from e2e.door import door, kubeconfig_for
from e2e.entitlement import address_of
from e2e.polls import eventually
from e2e.rbac import Rights
from e2e.speaker import speaking
from e2e.test_deploying import applied
from plimsoll.commands.program import app
from plimsoll.preflight.definitions import INSTALL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from e2e.rbac import Asked
    from e2e.speaker import Speaker
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

Obj = dict[str, Any]
ACCOUNT = f"system:serviceaccount:{NAME}:{NAME}"


@dataclass(frozen=True, slots=True)
class Told:
    """What a run of the command printed."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Obj:
        """Of ``-o json``."""
        found: Obj = json.loads(self.out)
        return found

    def lines(self, level: str, area: str) -> list[str]:
        """Subjects and sentences of a table, of one level and area."""
        rows = [re.split(" {3,}", line, maxsplit=4) for line in self.out.splitlines() if line.count("   ")]
        return [f"{row[2]} {row[4]}" for row in rows if row[:2] == [level, area]]


async def told(*words: str) -> Told:
    """Run the command, with all that is well unless another format is wanted."""
    more = () if "-o" in words else ("-o", "wide")
    done = await asyncio.to_thread(CliRunner().invoke, app, ["check", *words, *more])
    return Told(done.exit_code, done.stdout, done.stderr)


async def lease(speaker: Speaker) -> None:
    """An operator leads, for an hour."""
    spec = {
        "holderIdentity": "plimsoll-abc_1",
        "leaseDurationSeconds": 3600,
        "renewTime": "2999-01-01T00:00:00.000000Z",
    }
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": NAME, "namespace": NAME},
        "spec": spec,
    }
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAME}/leases"
    (await speaker.request("POST", path, body)).accepted()


async def policy(speaker: Speaker, name: str, spec: Obj) -> None:
    """A policy that an operator accepted."""
    path = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"
    body = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
    (await speaker.request("POST", path, body)).accepted()


def without_scope() -> Obj:
    """The definition of policies, as of a time before they had a scope."""
    documents = copy.deepcopy(files("crds"))
    (old,) = [each for each in documents if each["spec"]["names"]["plural"] == "schedulingpolicies"]
    schema = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["spec"]["properties"]["scope"]
    return old


async def test_an_installation_step_by_step(start_roadstead: StartRoadstead, tmp_path: Path) -> None:
    """What is missing is said, with what to do; when that is done, nothing is missing."""
    cluster = start_roadstead(nodes=1)
    async with speaking(cluster.kubeconfig) as speaker, door(cluster.plain_url, lambda _: True) as entrance:
        config = f"--kubeconfig={kubeconfig_for(tmp_path / 'door', entrance.url, cluster.token)}"

        empty = await told(config)
        assert empty.code == 1
        assert empty.err == ""
        for each in ("evictions", "nodemaintenances", "podgroups", "rebalancingrules", "schedulingpolicies"):
            said = f"{each}.plimsoll.dev it is not installed; install it: {INSTALL}"
            assert said in empty.lines("error", "definitions")
        assert empty.lines("warning", "lease")[0].startswith("lease no operator was found")
        assert empty.out.splitlines()[0] == "5 errors, 2 warnings, 6 ok"

        await define(speaker)
        await speaker.install(DEFINITIONS, without_scope())
        outdated = await told(config)
        (finding,) = outdated.lines("error", "definitions")
        assert finding.startswith(
            "schedulingpolicies.plimsoll.dev its schema is older than this version: it lacks spec.scope;"
        )
        assert finding.endswith(f"replace it: {INSTALL}")
        await define(speaker)

        await asyncio.to_thread(applied, rendered("dry-run"), cluster.kubeconfig)
        await lease(speaker)
        await policy(speaker, "moving", {"rebalancing": {"mode": "Enforce"}})
        rights = [await Rights.read(speaker, NAME, NAME)]
        entrance.others[ACCOUNT] = lambda asked: rights[0](asked)  # noqa: PLW0108 - others come later
        lacking = await told(config)
        assert lacking.code == 1
        (finding,) = lacking.lines("error", "rights")
        assert finding == (
            f"policy moving {ACCOUNT} may not create pods/eviction: no pod is moved;"
            " apply deploy/enforce (chart: mode: Enforce)"
        )
        assert "the operator system" in " ".join(lacking.lines("ok", "rights"))
        assert "policy plimsoll-own-records lets only" in " ".join(lacking.lines("ok", "rights"))

        answer = (await told(config, "-o", "json")).answer
        assert (answer["level"], answer["accounts"]) == ("error", [ACCOUNT])
        # kubectl validates a List by itself, with what the development cluster does not serve.
        kubectl = (f"--kubeconfig={cluster.kubeconfig}", "apply", "--validate=false", "-f-")
        await asyncio.to_thread(run, "kubectl", *kubectl, given=json.dumps(answer["grants"]))
        rights[0] = await Rights.read(speaker, NAME, NAME)
        granted = await told(config)
        assert granted.lines("error", "rights") == []
        assert granted.code == 0

        strict = await told(config, "--strict")
        (finding,) = strict.lines("warning", "policies")
        assert strict.code == 2
        assert finding.startswith("policy moving no operator has looked at it;")
        assert {asked.verb for asked in entrance.reviewed} > {"list", "watch", "update"}
        assert {verb for verb, group, _ in entrance.used if group != "authorization.k8s.io"} <= {
            "get",
            "list",
            "create",
        }
        assert {call for call in entrance.used if call[0] == "create"} == {
            ("create", "authentication.k8s.io", "selfsubjectreviews"),
            ("create", "authorization.k8s.io", "subjectaccessreviews"),
        }


async def test_others_at_work(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """A scheduler that serves our policy's name, and a descheduler; the operator logs what it sees of it."""
    cluster = start_roadstead(nodes=1)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        kubectl = (f"--kubeconfig={cluster.kubeconfig}", "apply", "-f-")
        await asyncio.to_thread(run, "kubectl", *kubectl, given=OTHERS)
        await policy(
            speaker,
            "all",
            {"scheduling": {"schedulerName": "default-scheduler"}, "rebalancing": {"mode": "Enforce"}},
        )
        config = f"--kubeconfig={cluster.kubeconfig}"
        await speaker.install(DEFINITIONS, without_scope())

        found = await eventually(
            lambda: told(config, "-o", "wide"), lambda found: bool(found.lines("error", "schedulers"))
        )

        (scheduler,) = found.lines("error", "schedulers")
        assert scheduler.startswith(
            "kube-scheduler it is at work, and places pods"
            " (Pod kube-system/kube-scheduler-cp is ready),"
            " serves schedulerName default-scheduler by default, and policy all serves it too"
        )
        (descheduler,) = found.lines("warning", "schedulers")
        assert descheduler.startswith(
            "descheduler it seems to be at work, and evicts pods"
            " (CronJob kube-system/descheduler starts it from time to time), and policy all too"
        )

        operator = start_operator(cluster.kubeconfig, "--log-format", "json")
        await eventually(
            lambda: asyncio.to_thread(checks_of, operator),
            lambda found: {"definitions", "schedulers"} <= found.keys(),
        )
        assert await operator.stop() == 0
    logged = checks_of(operator)
    assert logged.keys() == {"definitions", "schedulers"}
    assert (logged["definitions"]["level"], logged["schedulers"]["level"]) == ("error", "error")
    assert logged["definitions"]["problem"] == "its schema is older than this version: it lacks spec.scope"
    shown = "kube-scheduler {problem}; {remedy}".format_map(logged["schedulers"])
    assert shown == scheduler


async def test_rights_on_devices(start_roadstead: StartRoadstead, tmp_path: Path) -> None:
    """They are asked for when the cluster has devices, and the manifest of the answer grants them."""
    cluster = start_roadstead(nodes=1)
    async with speaking(cluster.kubeconfig) as speaker, door(cluster.plain_url, lambda _: True) as entrance:
        config = f"--kubeconfig={kubeconfig_for(tmp_path / 'door', entrance.url, cluster.token)}"
        await define(speaker)
        await asyncio.to_thread(applied, rendered("enforce"), cluster.kubeconfig)
        await lease(speaker)
        await policy(speaker, "placing", {"scheduling": {"schedulerName": "mine"}})
        rights = [await Rights.read(speaker, NAME, NAME)]
        entrance.others[ACCOUNT] = lambda asked: rights[0](asked)  # noqa: PLW0108 - others come later

        without = await told(config)
        pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": "node-0001", "devices": []}
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}}
        path = "/apis/resource.k8s.io/v1/resourceslices"
        (await speaker.request("POST", path, {**body, "spec": spec})).accepted()
        lacking = await told(config)
        grants = (await told(config, "-o", "json")).answer["grants"]
        kubectl = (f"--kubeconfig={cluster.kubeconfig}", "apply", "--validate=false", "-f-")
        await asyncio.to_thread(run, "kubectl", *kubectl, given=json.dumps(grants))
        rights[0] = await Rights.read(speaker, NAME, NAME)
        granted = await told(config)

    (noted,) = [line for line in without.lines("ok", "rights") if line.startswith("devices")]
    assert "the cluster has neither devices nor claims; before it has some, apply deploy/" in noted
    assert "What grants" not in without.out, without.out
    (finding,) = lacking.lines("warning", "rights")
    assert finding.startswith(f"devices {ACCOUNT} may not use deviceclasses.resource.k8s.io (list, watch), ")
    assert finding.endswith(
        "pods with resource claims wait, all others are served;"
        " apply deploy/components/devices (chart: devices: true)"
    )
    assert lacking.code == 0
    assert granted.lines("warning", "rights") == []
    (fine,) = [line for line in granted.lines("ok", "rights") if line.startswith("devices")]
    assert "has the 12 rights that are needed" in fine


async def test_devices_that_are_not_served(defined: Path, roadstead_process: Any, tmp_path: Path) -> None:
    """Of an API server without resource.k8s.io/v1 nothing is said about them."""
    server, tls = await address_of(defined)
    async with door(server, lambda _: True, tls) as entrance:
        entrance.others["system:serviceaccount:a:b"] = lambda _: False
        entrance.unserved = "/apis/resource.k8s.io"
        config = kubeconfig_for(tmp_path / "door", entrance.url, roadstead_process.token)
        found = await told(f"--kubeconfig={config}", "--as-service-account", "a/b")

    assert found.lines("error", "rights") != []
    assert not [line for line in found.lines("warning", "rights") if line.startswith("devices")]


def checks_of(operator: Operator) -> dict[str, Obj]:
    """The lines about findings in an operator's log, by area."""
    lines = [json.loads(line) for line in operator.said().splitlines() if line.startswith("{")]
    return {line["area"]: line for line in lines if line["event"] == "check"}


OTHERS = """
apiVersion: v1
kind: Pod
metadata: {name: kube-scheduler-cp, namespace: kube-system}
spec: {nodeName: node-0001, containers: [{name: it, image: registry.k8s.io/kube-scheduler:v1.36.2}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: descheduler, namespace: kube-system}
spec:
  schedule: "*/2 * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: it, image: registry.k8s.io/descheduler/descheduler:v0.34.0}]
"""


@pytest.mark.parametrize(
    ("denied", "area", "said"),
    [
        (
            ("list", "coordination.k8s.io", "leases"),
            "lease",
            "you may not list leases.coordination.k8s.io; ask",
        ),
        (
            ("create", "authorization.k8s.io", "subjectaccessreviews"),
            "rights",
            "you may not create subjectaccessreviews.authorization.k8s.io",
        ),
        (
            ("list", "apiextensions.k8s.io", "customresourcedefinitions"),
            "definitions",
            "you may not list customresourcedefinitions.apiextensions.k8s.io",
        ),
        (
            ("list", "plimsoll.dev", "schedulingpolicies"),
            "policies",
            "you may not list schedulingpolicies.plimsoll.dev",
        ),
        (("list", "", "pods"), "pods", "you may not list pods"),
        (("list", "batch", "cronjobs"), "schedulers", "you may not list cronjobs.batch"),
    ],
)
async def test_a_read_that_is_forbidden(
    defined: Path, roadstead_process: Any, tmp_path: Path, denied: tuple[str, str, str], area: str, said: str
) -> None:
    """It is named with the right that it takes, and the rest is checked."""

    def permits(asked: Asked) -> bool:
        return (asked.verb, asked.group, asked.resource) != denied

    server, tls = await address_of(defined)
    async with door(server, permits, tls) as entrance:
        entrance.others["system:serviceaccount:a:b"] = lambda _: True
        config = kubeconfig_for(tmp_path / "door", entrance.url, roadstead_process.token)

        found = await told(f"--kubeconfig={config}", "--as-service-account", "a/b")

    assert any(said in line for line in found.lines("warning", area))
    assert len(found.lines("ok", "server")) == 3


@pytest.mark.parametrize(
    ("server", "token", "said"),
    [
        ("", "expired", "{} does not accept the credentials: Unauthorized; log in again"),
        ("http://127.0.0.1:9", "", "no answer from {}: ConnectionRefusedError"),
    ],
)
async def test_a_server_that_does_not_take_us(
    defined: Path, roadstead_process: Any, tmp_path: Path, server: str, token: str, said: str
) -> None:
    """One line, and for programs an answer."""
    behind, tls = await address_of(defined)
    async with door(behind, lambda _: True, tls) as entrance:
        address = server or entrance.url
        config = kubeconfig_for(tmp_path / "config", address, token or roadstead_process.token)

        for_people = await told(f"--kubeconfig={config}")
        for_programs = await told(f"--kubeconfig={config}", "-o", "json")

    assert (for_people.code, for_people.out) == (1, "")
    assert for_people.err.startswith(f"error: {said.format(address)}")
    assert for_programs.code == 1
    assert [each["level"] for each in for_programs.answer["findings"]] == ["error"]


async def test_ports_that_are_taken(defined: Path) -> None:
    """In the operator's place."""
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        found = await told(
            f"--kubeconfig={defined}",
            "--ports",
            "--bind-address=127.0.0.1",
            f"--metrics-port={port}",
            "--health-port=0",
            "--self",
        )

    (finding,) = found.lines("error", "ports")
    assert finding == (
        f"port 127.0.0.1:{port} /metrics cannot be served: another process listens there;"
        " choose another --metrics-port, --health-port or --bind-address"
    )


async def test_what_the_account_is_written_like() -> None:
    """One line about the flag."""
    found = await told("--as-service-account", "plimsoll")

    assert (found.code, found.err) == (
        1,
        "error: --as-service-account: plimsoll is not NAMESPACE/NAME, such as plimsoll/plimsoll\n",
    )
