"""Admission webhooks over HTTPS, with their server in the test: their questions and what answers do."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import datetime as dt
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from roadstead.certificates import Identity, loopback_identity
from roadstead.cluster import DevCluster

GROUP = "/apis/admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = f"{GROUP}/mutatingwebhookconfigurations", f"{GROUP}/validatingwebhookconfigurations"
SPACE = "/api/v1/namespaces/default"
CONFIG_MAPS, PODS = f"{SPACE}/configmaps", f"{SPACE}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
NAME = "hook.example.com"
MERGE = "application/merge-patch+json"

Value = TypeVar("Value")
Answer = Callable[[Any], Awaitable[Any]]


@pytest.fixture(scope="module")
def identity() -> Identity:
    """The certificate of the webhook server."""
    return loopback_identity(names=["hook.default.svc"])


class Hooks:
    """A server of webhooks: each path has a function from request to response, and keeps its requests."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.asked: list[Any] = []
        self.paths: dict[str, Answer] = {}
        self.port = 0

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Answer one review."""
        review = await request.json()
        self.asked.append(review["request"])
        response = await self.paths[request.path](review["request"])
        if isinstance(response, web.Response):
            return response
        given = {"uid": review["request"]["uid"], "allowed": True} | (response or {})
        head = {"kind": "AdmissionReview", "apiVersion": review["apiVersion"]}
        return web.json_response({**head, "response": given})

    @property
    def bundle(self) -> str:
        """Its certificate authority."""
        return base64.b64encode(self.identity.certificate).decode()

    def url(self, path: str = "/") -> Any:
        """A ``clientConfig``."""
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.bundle}

    def hook(self, answer: Any = None, path: str = "/", **more: Any) -> Any:
        """A webhook for ConfigMaps that gives an answer, which may be a function of the request."""

        async def given(request: Any) -> Any:
            said = answer(request) if callable(answer) else answer
            return await said if asyncio.iscoroutine(said) else said

        self.paths[path] = given
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
        plain = {"name": NAME, "clientConfig": self.url(path), "rules": [rule], "sideEffects": "None"}
        return {**plain, "admissionReviewVersions": ["v1"], **more}


class Client:
    """Sends requests; every answer is a code and a body, and its warnings are kept."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self.warnings: list[str] = []

    async def send(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        """One request."""
        sent = {"Content-Type": media}
        async with self.session.request(method, path, data=json.dumps(body), headers=sent) as answer:
            self.warnings = answer.headers.getall("Warning", [])
            return answer.status, json.loads(await answer.text())

    async def made(self, path: str, body: Any) -> Any:
        """What a creation answers; it succeeds."""
        code, answer = await self.send("POST", path, body)
        assert code == 201, answer
        return answer

    async def configure(self, path: str, *hooks: Any, name: str = "ours") -> None:
        """Create a configuration."""
        await self.made(path, {"metadata": {"name": name}, "webhooks": list(hooks)})


@contextlib.asynccontextmanager
async def serving(identity: Identity) -> AsyncIterator[Hooks]:
    """A server of webhooks."""
    found = Hooks(identity)
    runner = web.ServerRunner(web.Server(found.handle, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=identity.context).start()
    found.port = runner.addresses[0][1]
    yield found
    await runner.cleanup()


@pytest.fixture
async def hooks(identity: Identity) -> AsyncIterator[Hooks]:
    """A server of webhooks."""
    async with serving(identity) as found:
        yield found


@pytest.fixture
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[DevCluster]:
    """A cluster without a port, in which only the test writes; with controllers if the test asks so.

    A write that meets another's while its webhooks answer is judged again, so tests that count what is asked
    cannot share objects with controllers.
    """
    controllers = getattr(request, "param", False)
    async with DevCluster(port=None, kubelets=None, controllers=controllers) as found:
        yield found


@pytest.fixture
async def client(cluster: DevCluster) -> AsyncIterator[Client]:
    """A client of the cluster."""
    async with cluster.session() as session:
        yield Client(session)


def a_map(name: str = "one", **data: str) -> Any:
    """A ConfigMap."""
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "data": data}


def a_deployment() -> Any:
    """A Deployment of no pods."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "d"}, "spec": spec}


def patching(*operations: Any) -> Any:
    """The response of a webhook that patches."""
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"patch": text, "patchType": "JSONPatch"}


def adding(path: str, value: Any) -> Any:
    """An operation of a patch."""
    return {"op": "add", "path": path, "value": value}


def rules(*resources: str, operations: Any = ("*",), group: str = "", **more: Any) -> Any:
    """Rules of a webhook."""
    one = {"apiGroups": [group], "apiVersions": ["v1"], "resources": list(resources)}
    return [{**one, "operations": list(operations), **more}]


# -- what is asked -------------------------------------------------------------------------------------------


async def test_a_webhook_is_asked_as_kube_apiserver_asks(client: Client, hooks: Hooks) -> None:
    await client.configure(VALIDATING, hooks.hook())

    made = await client.made(f"{CONFIG_MAPS}?fieldManager=me&fieldValidation=Strict", a_map(a="1"))
    await client.send("PATCH", f"{CONFIG_MAPS}/one?dryRun=All", {"data": {"a": "2"}}, MERGE)
    await client.send("DELETE", f"{CONFIG_MAPS}/one", {"gracePeriodSeconds": 0})

    create, update, delete = hooks.asked
    for one in hooks.asked:
        assert one["kind"] == one["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert one["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
        assert (one["name"], one["namespace"]) == ("one", "default")
        assert "subResource" not in one
        assert one["userInfo"]["username"] == "roadstead-admin"
    assert len({one["uid"] for one in hooks.asked}) == 3
    assert (create["operation"], create["oldObject"], create["dryRun"]) == ("CREATE", None, False)
    assert create["object"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert create["options"] == {
        "kind": "CreateOptions",
        "apiVersion": "meta.k8s.io/v1",
        "fieldManager": "me",
        "fieldValidation": "Strict",
    }
    assert (update["operation"], update["dryRun"]) == ("UPDATE", True)
    assert (update["oldObject"]["data"], update["object"]["data"]) == ({"a": "1"}, {"a": "2"})
    assert update["options"]["kind"] == "UpdateOptions"
    assert (delete["operation"], delete["object"]) == ("DELETE", None)
    assert delete["oldObject"]["data"] == {"a": "1"}
    assert delete["options"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": 0,
    }


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({"rules": rules("configmaps", operations=["UPDATE"])}, False),
        ({"rules": rules("configmaps", group="apps")}, False),
        ({"rules": rules("*")}, True),
        ({"rules": rules("*/*")}, True),
        ({"rules": rules("configmaps/*")}, True),
        ({"rules": rules("configmaps/status")}, False),
        ({"rules": rules("*", scope="Cluster")}, False),
        ({"rules": rules("*", scope="Namespaced")}, True),
        ({"rules": []}, False),
        ({"objectSelector": {"matchLabels": {"app": "db"}}}, False),
        ({"objectSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"matchConditions": [{"name": "a", "expression": "object.data.a == '2'"}]}, False),
        ({"matchConditions": [{"name": "a", "expression": "request.operation == 'CREATE'"}]}, True),
        (
            {
                "matchConditions": [{"name": "a", "expression": "object.data.b == '2'"}],
                "failurePolicy": "Ignore",
            },
            False,
        ),
        (
            {
                "matchConditions": [
                    {"name": "a", "expression": "object.data.b == '2'"},
                    {"name": "b", "expression": "false"},
                ]
            },
            False,
        ),
    ],
)
@pytest.mark.parametrize("kind", [MUTATING, VALIDATING])
async def test_who_is_asked(client: Client, hooks: Hooks, more: Any, asked: bool, kind: str) -> None:
    await client.configure(kind, hooks.hook(**more))
    await client.made(CONFIG_MAPS, a_map(a="1"))
    assert bool(hooks.asked) is asked


async def test_a_match_condition_that_fails_refuses(client: Client, hooks: Hooks) -> None:
    condition = {"name": "a", "expression": "object.data.b == '2'"}
    await client.configure(VALIDATING, hooks.hook(matchConditions=[condition]))

    code, refused = await client.send("POST", CONFIG_MAPS, a_map(a="1"))

    why = "expression 'object.data.b == '2'' resulted in error: no such key: b"
    assert (code, refused["message"]) == (403, f'configmaps "one" is forbidden: {why}')
    assert hooks.asked == []


async def test_another_version_of_a_kind_is_asked_in_the_version_of_the_rule(
    client: Client, hooks: Hooks
) -> None:
    for name, policy in (("equal.example.com", "Equivalent"), ("exact.example.com", "Exact")):
        rule = rules("events")
        one = hooks.hook(path=f"/{policy}", name=name, rules=rule, matchPolicy=policy)
        await client.configure(VALIDATING, one, name=policy.lower())
    event = {"metadata": {"name": "e"}, "reason": "R", "note": "it is", "type": "Normal", "action": "A"}
    event |= {"regarding": {"kind": "Pod", "namespace": "default", "name": "p"}}
    event |= {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "c.example.com/c"}

    code, made = await client.send(
        "POST", "/apis/events.k8s.io/v1/namespaces/default/events", {**event, "reportingInstance": "i"}
    )

    assert code == 201, made
    (asked,) = hooks.asked
    assert asked["kind"] == {"group": "", "version": "v1", "kind": "Event"}
    assert asked["requestKind"] == {"group": "events.k8s.io", "version": "v1", "kind": "Event"}
    assert (asked["object"]["apiVersion"], asked["object"]["message"]) == ("v1", "it is")


async def test_subresources_are_asked_about_with_their_own_objects(
    cluster: DevCluster, client: Client, hooks: Hooks
) -> None:
    every = [*rules("pods/binding", "pods/eviction"), *rules("deployments/scale", group="apps")]
    await client.configure(VALIDATING, hooks.hook(rules=every))
    deployment = a_deployment()
    await client.made(DEPLOYMENTS, deployment)
    await client.made(PODS, {"metadata": {"name": "p"}, "spec": deployment["spec"]["template"]["spec"]})
    cluster.api.create("nodes", {"metadata": {"name": "n"}})

    await client.made(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}})
    await client.made(f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
    await client.send("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 1}}, MERGE)

    shown = [
        (one["operation"], one["subResource"], one["kind"]["kind"], one["object"]["kind"])
        for one in hooks.asked
    ]
    assert shown == [
        ("CREATE", "binding", "Binding", "Binding"),
        ("CREATE", "eviction", "Eviction", "Eviction"),
        ("UPDATE", "scale", "Scale", "Scale"),
    ]
    scale = next(one for one in hooks.asked if one["subResource"] == "scale")
    assert (scale["oldObject"]["spec"], scale["object"]["spec"]) == ({}, {"replicas": 1})


async def test_a_write_that_meets_another_is_judged_again(
    cluster: DevCluster, client: Client, hooks: Hooks
) -> None:
    """As in kube-apiserver, whose update repeats admission on the object that it finds after a conflict."""

    def answer(request: Any) -> None:
        if len(hooks.asked) == 1:
            cluster.api.patch("deployments.apps", "default", "d", {"metadata": {"labels": {"by": "another"}}})

    every = rules("deployments/scale", group="apps", operations=["UPDATE"])
    await client.configure(VALIDATING, hooks.hook(answer, rules=every))
    await client.made(DEPLOYMENTS, a_deployment())

    code, _ = await client.send("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 1}}, MERGE)

    first, second = (one["oldObject"]["metadata"]["resourceVersion"] for one in hooks.asked)
    found = cluster.api.get("deployments.apps", "default", "d")
    assert (code, found["spec"]["replicas"], found["metadata"]["labels"]) == (200, 1, {"by": "another"})
    assert int(first) < int(second) < int(found["metadata"]["resourceVersion"])


@pytest.mark.parametrize(("path", "name"), [("binding", "target"), ("eviction", "deleteOptions")])
async def test_a_refused_subresource_changes_nothing(
    cluster: DevCluster, client: Client, hooks: Hooks, path: str, name: str
) -> None:
    await client.configure(VALIDATING, hooks.hook({"allowed": False}, rules=rules(f"pods/{path}")))
    await client.made(
        PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    )
    before = cluster.api.get("pods", "default", "p")

    code, refused = await client.send(
        "POST", f"{PODS}/p/{path}", {"metadata": {"name": "p"}, name: {"name": "n"}}
    )

    assert (code, refused["message"]) == (
        400,
        f'admission webhook "{NAME}" denied the request without explanation',
    )
    assert cluster.api.get("pods", "default", "p") == before


async def test_configurations_of_admission_are_not_judged(client: Client, hooks: Hooks) -> None:
    deny = hooks.hook({"allowed": False}, rules=rules("*", group="*"))
    await client.configure(VALIDATING, deny)

    code, _ = await client.send("DELETE", f"{VALIDATING}/ours")

    assert (code, hooks.asked) == (200, [])


# -- what answers do -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [MUTATING, VALIDATING])
@pytest.mark.parametrize(
    ("response", "code", "ending", "reason"),
    [
        ({"allowed": False}, 400, " without explanation", None),
        ({"allowed": False, "status": {"message": "no"}}, 400, ": no", None),
        (
            {"allowed": False, "status": {"message": "no", "code": 403, "reason": "Forbidden"}},
            403,
            ": no",
            "Forbidden",
        ),
        ({"allowed": False, "status": {"reason": "Expired", "code": 200}}, 400, ": Expired", "Expired"),
        ({"allowed": False, "status": {"code": 422}}, 422, " without explanation", None),
    ],
)
async def test_a_denial_has_the_words_and_the_code_of_the_webhook(
    client: Client, hooks: Hooks, kind: str, response: Any, code: int, ending: str, reason: str | None
) -> None:
    await client.configure(kind, hooks.hook({**response, "warnings": ["careful"]}))

    status, refused = await client.send("POST", CONFIG_MAPS, a_map())

    assert (status, refused["message"]) == (code, f'admission webhook "{NAME}" denied the request{ending}')
    assert (refused["code"], refused.get("reason")) == (code, reason)
    assert client.warnings == ['299 - "careful"']
    assert (await client.send("GET", f"{CONFIG_MAPS}/one"))[0] == 404


async def test_patches_are_applied_in_order_and_validators_see_the_result(
    client: Client, hooks: Hooks
) -> None:
    def second(request: Any) -> Any:
        assert request["object"]["data"] == {"a": "1", "b": "2"}
        return patching({"op": "remove", "path": "/data/a"})

    first = patching(adding("/data/b", "2"))
    await client.configure(MUTATING, hooks.hook(first, "/first"), name="a")
    await client.configure(MUTATING, hooks.hook(second, "/second", name="second.example.com"), name="b")
    await client.configure(VALIDATING, hooks.hook({"warnings": ["seen"]}, "/third"))

    made = await client.made(CONFIG_MAPS, a_map(a="1"))

    assert made["data"] == {"b": "2"}
    assert hooks.asked[-1]["object"]["data"] == {"b": "2"}
    assert client.warnings == ['299 - "seen"']


async def test_a_patched_pod_gets_defaults_and_is_validated(client: Client, hooks: Hooks) -> None:
    side = {"name": "side", "image": "side:1"}
    answer = patching(adding("/spec/containers/-", side))
    await client.configure(MUTATING, hooks.hook(lambda _: answer, rules=rules("pods")))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

    made = await client.made(PODS, pod)

    assert made["spec"]["containers"][1]["imagePullPolicy"] == "IfNotPresent"
    answer = patching(adding("/spec/containers/-", {**side, "name": "c"}))
    code, refused = await client.send("POST", PODS, {**pod, "metadata": {"name": "q"}})
    assert (code, refused["reason"]) == (422, "Invalid")
    assert 'spec.containers[1].name: Duplicate value: "c"' in refused["message"]


@pytest.mark.parametrize(("policy", "times"), [("IfNeeded", 2), ("Never", 1)])
async def test_an_earlier_webhook_is_asked_again_after_a_change(
    client: Client, hooks: Hooks, policy: str, times: int
) -> None:
    def first(request: Any) -> Any:
        later = request["object"]["data"].get("b", "")
        return patching(adding("/data/a", f"after {later}".strip()))

    one = hooks.hook(first, "/first", reinvocationPolicy=policy)
    two = hooks.hook(patching(adding("/data/b", "2")), "/second", name="two.example.com")
    await client.configure(MUTATING, one, two)

    made = await client.made(CONFIG_MAPS, a_map(x="1"))

    assert len(hooks.asked) == times + 1
    assert made["data"]["a"] == ("after 2" if times == 2 else "after")


async def test_what_is_asked_again_makes_a_later_one_run_again(client: Client, hooks: Hooks) -> None:
    """As in kube-apiserver, which asks the second one twice; an equal question is asked once here."""
    one = hooks.hook(patching(adding("/data/x", "1")), "/first", reinvocationPolicy="IfNeeded")
    two = hooks.hook(
        patching({"op": "replace", "path": "/data/x", "value": "2"}),
        "/second",
        name="two.example.com",
        reinvocationPolicy="IfNeeded",
    )
    await client.configure(MUTATING, one, two)

    made = await client.made(CONFIG_MAPS, a_map(a="1"))

    assert made["data"] == {"a": "1", "x": "2"}


async def test_a_webhook_is_not_asked_again_after_its_own_change(client: Client, hooks: Hooks) -> None:
    own = hooks.hook(patching(adding("/data/a", "1")), reinvocationPolicy="IfNeeded")
    await client.configure(MUTATING, own)

    await client.made(CONFIG_MAPS, a_map(x="1"))

    assert len(hooks.asked) == 1


async def test_a_policy_and_a_webhook_reinvoke_each_other(client: Client, hooks: Hooks) -> None:
    expression = 'Object{data: {"p": object.data.?h.orValue("none")}}'
    constraints = {"resourceRules": rules("configmaps", operations=["CREATE"])}
    spec = {"matchConstraints": constraints, "reinvocationPolicy": "IfNeeded", "failurePolicy": "Fail"}
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    await client.made(
        f"{GROUP}/mutatingadmissionpolicies",
        {"metadata": {"name": "p"}, "spec": {**spec, "mutations": [mutation]}},
    )
    binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p"}}
    await client.made(f"{GROUP}/mutatingadmissionpolicybindings", binding)

    def answer(request: Any) -> Any:
        return patching(adding("/data/h", "seen " + request["object"]["data"]["p"]))

    await client.configure(MUTATING, hooks.hook(answer, reinvocationPolicy="IfNeeded"))

    made = await client.made(CONFIG_MAPS, a_map(x="1"))

    assert made["data"] == {"x": "1", "p": "seen none", "h": "seen seen none"}


async def test_a_deletion_can_be_denied_and_not_patched(client: Client, hooks: Hooks) -> None:
    await client.made(CONFIG_MAPS, a_map(a="1"))
    deletes = rules("configmaps", operations=["DELETE"])
    await client.configure(MUTATING, hooks.hook(patching(adding("/data/b", "2")), rules=deletes))

    code, refused = await client.send("DELETE", f"{CONFIG_MAPS}/one")

    why = "attempted to modify the object, which is not supported for this operation"
    text = f'Internal error occurred: admission webhook "{NAME}" {why}'
    assert (code, refused["message"]) == (500, text)


async def test_a_collection_is_deleted_one_by_one_and_shown_whole(client: Client, hooks: Hooks) -> None:
    for name in ("a", "b", "c"):
        await client.made(CONFIG_MAPS, a_map(name))
    await client.configure(VALIDATING, hooks.hook(rules=rules("configmaps", operations=["DELETE"])))

    code, deleted = await client.send("DELETE", f"{CONFIG_MAPS}?labelSelector=app=web")

    assert (code, [one["metadata"]["name"] for one in deleted["items"]]) == (200, ["a", "b", "c"])
    assert [one["oldObject"]["metadata"]["name"] for one in hooks.asked] == ["a", "b", "c"]
    assert not any("name" in one for one in hooks.asked)
    assert (await client.send("GET", CONFIG_MAPS))[1]["items"] == []


# -- failures ------------------------------------------------------------------------------------------------


def replying(status: int, text: str = "") -> Any:
    """An answer that is no review."""
    return lambda _: web.Response(status=status, text=text)


async def slow(_request: Any) -> Any:
    """An answer that comes too late for a timeout of one second."""
    await asyncio.sleep(3)


FAILURES = [
    (slow, 'failed to call webhook: Post "URL?timeout=1s": context deadline exceeded'),
    (replying(404), "failed to call webhook: the server could not find the requested resource"),
    (
        replying(500, "oh"),
        'failed to call webhook: an error on the server ("oh") has prevented the request from succeeding',
    ),
    (
        replying(418),
        (
            "failed to call webhook: the server responded with the status code 418 but did not return more "
            "information"
        ),
    ),
    (replying(200, "{}"), "received invalid webhook response: webhook response was absent"),
    ({"uid": "x"}, 'received invalid webhook response: expected response.uid="UID", got "x"'),
    ({"patch": "W10="}, "received invalid webhook response: WITHOUT"),
    ({"patchType": "JSONPatch"}, "received invalid webhook response: WITHOUT"),
]
WITHOUT = {
    (MUTATING, "patch"): "webhook returned response.patch but not response.patchType",
    (MUTATING, "patchType"): "webhook returned response.patchType but not response.patch",
    (VALIDATING, "patch"): "validating webhook may not return response.patch",
    (VALIDATING, "patchType"): "validating webhook may not return response.patchType",
}


@pytest.mark.parametrize("kind", [MUTATING, VALIDATING])
@pytest.mark.parametrize(("answer", "why"), FAILURES)
async def test_a_failed_call_refuses_or_is_ignored(
    client: Client, hooks: Hooks, kind: str, answer: Any, why: str
) -> None:
    hook = hooks.hook(answer, timeoutSeconds=1 if answer is slow else 30)
    await client.configure(kind, hook)

    code, refused = await client.send("POST", CONFIG_MAPS, a_map())

    why = why.replace("URL", hooks.url()["url"]).replace("UID", hooks.asked[0]["uid"])
    if isinstance(answer, dict):
        why = why.replace("WITHOUT", WITHOUT.get((kind, *answer), ""))
    text = f'failed calling webhook "{NAME}": {why}'
    assert (code, refused["message"]) == (500, f"Internal error occurred: {text}")
    assert refused["details"]["causes"] == [{"message": text}]
    await client.send("PATCH", f"{kind}/ours", {"webhooks": [{**hook, "failurePolicy": "Ignore"}]}, MERGE)
    await client.made(CONFIG_MAPS, a_map())


async def test_a_server_that_is_not_trusted_or_not_there_is_named(client: Client, hooks: Hooks) -> None:
    other = base64.b64encode(loopback_identity().certificate).decode()
    hook = hooks.hook()
    client_config = hook["clientConfig"]
    nowhere = {**client_config, "url": "https://127.0.0.1:1/"}
    causes = {
        "tls: failed to verify certificate: x509: certificate signed by unknown authority": {
            **client_config,
            "caBundle": other,
        },
        "dial tcp 127.0.0.1:1: connect: connection refused": nowhere,
    }
    for number, (why, config) in enumerate(causes.items()):
        named = {**hook, "clientConfig": config}
        await client.configure(VALIDATING, named, name=f"ours-{number}")
        code, refused = await client.send("POST", CONFIG_MAPS, a_map())
        text = f'failed to call webhook: Post "{config["url"]}?timeout=10s": {why}'
        expected = f'Internal error occurred: failed calling webhook "{NAME}": {text}'
        assert (code, refused["message"]) == (500, expected)
        await client.send("DELETE", f"{VALIDATING}/ours-{number}")


def issued(folder: Path) -> Identity:
    """A certificate of loopback by an authority that is not kept, as envtest's."""
    key, authority = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("leaf", "ca"))
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        builder.not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(authority, hashes.SHA256())
    )
    certificate = made.public_bytes(serialization.Encoding.PEM)
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "both.pem").write_bytes(key.private_bytes(*plain) + certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "both.pem")
    return Identity(certificate, context)


async def test_the_path_of_a_url_is_cleaned(client: Client, hooks: Hooks) -> None:
    hook = hooks.hook(path="/validate/it")
    hook["clientConfig"] = hooks.url("//validate//it/")  # as envtest joins host and path
    await client.configure(VALIDATING, hook)
    await client.made(CONFIG_MAPS, a_map())
    assert len(hooks.asked) == 1


async def test_a_bundle_may_hold_the_certificate_alone(client: Client, tmp_path: Path) -> None:
    async with serving(issued(tmp_path)) as hooks:
        await client.configure(VALIDATING, hooks.hook())
        await client.made(CONFIG_MAPS, a_map())
        assert len(hooks.asked) == 1


async def test_a_service_is_a_port_on_loopback(client: Client, hooks: Hooks) -> None:
    hook = hooks.hook(path="/validate")
    service = {"name": "hook", "namespace": "default", "path": "/validate"}
    hook["clientConfig"] = {"service": service, "caBundle": hooks.bundle}
    await client.configure(VALIDATING, hook)
    url = "https://hook.default.svc:443/validate?timeout=10s"
    failed = (
        f'Internal error occurred: failed calling webhook "{NAME}": failed to call webhook: Post "{url}": '
    )

    code, refused = await client.send("POST", CONFIG_MAPS, a_map())
    assert (code, refused["message"]) == (500, f'{failed}service "hook" not found')
    made = await client.made(
        f"{SPACE}/services", {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}}
    )
    assert made["metadata"]["name"] == "hook"
    code, refused = await client.send("POST", CONFIG_MAPS, a_map())
    assert (code, refused["message"]) == (500, f'{failed}no endpoints available for service "hook"')
    port = {"metadata": {"annotations": {"roadstead.test/loopback-port": str(hooks.port)}}}
    await client.send("PATCH", f"{SPACE}/services/hook", port, MERGE)
    await client.made(CONFIG_MAPS, a_map())
    assert len(hooks.asked) == 1


# -- other writes in the meantime ----------------------------------------------------------------------------


@contextlib.contextmanager
def gathering(count: int) -> Iterator[Callable[[], Awaitable[None]]]:
    """A barrier: the first calls wait until so many wait, later ones do not."""
    barrier, left = asyncio.Barrier(count), count

    async def wait() -> None:
        nonlocal left
        if left:
            left -= 1
            await barrier.wait()

    yield wait


async def test_writers_that_wait_for_one_webhook_lose_no_update(client: Client, hooks: Hooks) -> None:
    await client.made(CONFIG_MAPS, a_map())
    with gathering(5) as wait:

        async def answer(request: Any) -> Any:
            await wait()  # all five have been judged on the first version
            key = next(
                iter(request["object"]["data"].keys() - (request["oldObject"].get("data") or {}).keys())
            )
            return patching(adding("/data/" + key + "-seen", "yes"))

        await client.configure(MUTATING, hooks.hook(answer, "/m"))
        patches = [
            client.send("PATCH", f"{CONFIG_MAPS}/one", {"data": {f"k{number}": "1"}}, MERGE)
            for number in range(5)
        ]
        answers = await asyncio.gather(*patches)

    assert [code for code, _ in answers] == [200] * 5
    _, found = await client.send("GET", f"{CONFIG_MAPS}/one")
    assert found["data"] == {
        f"k{n}{end}": text for n in range(5) for end, text in (("", "1"), ("-seen", "yes"))
    }
    assert len(hooks.asked) > 5


async def test_a_stale_update_conflicts_though_it_was_current_when_the_webhook_was_asked(
    client: Client, hooks: Hooks
) -> None:
    first = await client.made(CONFIG_MAPS, a_map(a="1"))
    with gathering(2) as wait:

        async def answer(_: Any) -> None:
            await wait()

        await client.configure(VALIDATING, hooks.hook(answer))
        bodies = [copy.deepcopy(first) | {"data": {"a": text}} for text in ("2", "3")]
        answers = await asyncio.gather(*(client.send("PUT", f"{CONFIG_MAPS}/one", body) for body in bodies))

    assert sorted(code for code, _ in answers) == [200, 409]


async def test_what_a_webhook_waits_for_may_be_written_in_the_meantime(client: Client, hooks: Hooks) -> None:
    async def answer(request: Any) -> Any:
        name = request["name"]
        if name.startswith("by-"):
            return None
        await client.made(CONFIG_MAPS, a_map(f"by-{name}"))  # asks this webhook, too
        _, listed = await client.send("GET", CONFIG_MAPS)
        return {"warnings": [f"{len(listed['items'])} there"]}

    await client.configure(VALIDATING, hooks.hook(answer, rules=rules("configmaps", operations=["CREATE"])))

    await client.made(CONFIG_MAPS, a_map())

    assert client.warnings == ['299 - "1 there"']
    _, listed = await client.send("GET", CONFIG_MAPS)
    assert [one["metadata"]["name"] for one in listed["items"]] == ["by-one", "one"]


async def test_a_name_taken_in_the_meantime_is_refused(client: Client, hooks: Hooks) -> None:
    with gathering(2) as wait:

        async def answer(_: Any) -> None:
            await wait()

        await client.configure(VALIDATING, hooks.hook(answer))
        answers = await asyncio.gather(*(client.send("POST", CONFIG_MAPS, a_map()) for _ in range(2)))

    assert sorted(code for code, _ in answers) == [201, 409]


# -- controllers ---------------------------------------------------------------------------------------------


async def appeared(cluster: DevCluster, resource: str, count: int) -> list[Any]:
    """Objects of a namespace, as soon as there are so many."""
    there = asyncio.Event()

    def look(*_: Any) -> None:
        if len(cluster.api.list(resource, "default")) >= count:
            there.set()

    cluster.api.subscribe(resource, look)
    look()
    async with asyncio.timeout(60):
        await there.wait()
    return cluster.api.list(resource, "default")


@pytest.mark.parametrize("cluster", ["replicaset-controller"], indirect=True)
async def test_controllers_ask_for_each_pod_and_record_a_denial(
    cluster: DevCluster, client: Client, hooks: Hooks
) -> None:
    denials = iter(range(3))

    def answer(request: Any) -> Any:
        if next(denials, None) is not None:
            return {"allowed": False, "status": {"message": "not yet"}}
        return patching(adding("/metadata/labels/uid", request["uid"]))

    await client.configure(MUTATING, hooks.hook(answer, rules=rules("pods", operations=["CREATE"])))
    await client.configure(VALIDATING, hooks.hook(None, "/v", rules=rules("pods", operations=["CREATE"])))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    sets = "/apis/apps/v1/namespaces/default/replicasets"

    await client.made(sets, {"metadata": {"name": "r"}, "spec": spec})

    pods = await appeared(cluster, "pods", 3)
    failures = [one for one in cluster.api.list("events", "default") if one["reason"] == "FailedCreate"]
    why = f'Error creating: admission webhook "{NAME}" denied the request: not yet'
    assert [(one["message"], one["count"]) for one in failures] == [(why, 3)]
    assert len({one["metadata"]["uid"] for one in pods}) == 3
    assert len({one["metadata"]["labels"]["uid"] for one in pods}) == 3  # one answer, one pod
    judged = {one["object"]["metadata"]["uid"] for one in hooks.asked if one["object"]["metadata"].get("uid")}
    assert {one["metadata"]["uid"] for one in pods} <= judged


# -- configurations ------------------------------------------------------------------------------------------

REFUSED = [
    ({"name": "hook"}, "name", 'Invalid value: "hook": should be a domain with at least three segments'),
    ({"sideEffects": None}, "sideEffects", "Required value: must specify one of None, NoneOnDryRun"),
    (
        {"sideEffects": "Some"},
        "sideEffects",
        'Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
    ),
    (
        {"timeoutSeconds": 31},
        "timeoutSeconds",
        "Invalid value: 31: the timeout value must be between 1 and 30",
    ),
    (
        {"admissionReviewVersions": []},
        "admissionReviewVersions",
        "Required value: must specify one of v1, v1beta1",
    ),
    (
        {"admissionReviewVersions": ["v2"]},
        "admissionReviewVersions",
        'Invalid value: ["v2"]: must include at least one of v1, v1beta1',
    ),
    ({"clientConfig": {}}, "clientConfig", "Required value: exactly one of url or service is required"),
    (
        {"clientConfig": {"url": "http://a/"}},
        "clientConfig.url",
        "Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
    ),
    (
        {"clientConfig": {"service": {"name": "a", "namespace": "b", "path": "abc"}}},
        "clientConfig.service.path",
        "Invalid value: \"abc\": must start with a '/'",
    ),
    ({"failurePolicy": "No"}, "failurePolicy", 'Unsupported value: "No": supported values: "Fail", "Ignore"'),
    ({"rules": rules("pods", operations=["GET"])}, "rules[0].operations[0]", 'Unsupported value: "GET"'),
    (
        {"rules": rules("pods", operations=["*", "CREATE"])},
        "rules[0].operations",
        'Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations',
    ),
    (
        {"rules": rules("*", "pods")},
        "rules[0].resources",
        'Invalid value: ["*","pods"]: if \'*\' is present, must not specify other resources without',
    ),
    (
        {"matchConditions": [{"name": "a", "expression": "object.x +"}]},
        "matchConditions[0].expression",
        'Invalid value: "object.x +": compilation failed',
    ),
]


@pytest.mark.parametrize(("more", "field", "why"), REFUSED)
async def test_a_configuration_is_checked(
    client: Client, hooks: Hooks, more: Any, field: str, why: str
) -> None:
    hook = {key: value for key, value in {**hooks.hook(), **more}.items() if value is not None}

    code, refused = await client.send("POST", VALIDATING, {"metadata": {"name": "ours"}, "webhooks": [hook]})

    assert code == 422
    found = {one["field"]: one["message"] for one in refused["details"]["causes"]}
    assert found[f"webhooks[0].{field}"].startswith(why)


async def test_defaults_and_generation_of_a_configuration(client: Client, hooks: Hooks) -> None:
    await client.configure(MUTATING, hooks.hook())
    _, found = await client.send("GET", f"{MUTATING}/ours")
    (hook,) = found["webhooks"]
    shown = {
        key: hook[key] for key in ("failurePolicy", "matchPolicy", "timeoutSeconds", "reinvocationPolicy")
    }
    assert shown == {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": 10,
        "reinvocationPolicy": "Never",
    }
    assert hook["rules"][0]["scope"] == "*"
    changed = {"webhooks": [{**hook, "timeoutSeconds": 5}]}
    _, updated = await client.send("PATCH", f"{MUTATING}/ours", changed, MERGE)
    assert (found["metadata"]["generation"], updated["metadata"]["generation"]) == (1, 2)
