"""MutatingAdmissionPolicies over HTTP: merged and patched objects, matching, parameters, refusals."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from roadstead.assembly import built_in_api, extended_server

TOKEN = "for-tests"
GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{GROUP}/mutatingadmissionpolicies"
BINDINGS = f"{GROUP}/mutatingadmissionpolicybindings"
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Client:
    """Sends requests; every answer is a code and a body."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def send(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        """One request."""
        sent = {"Content-Type": media}
        async with self.session.request(method, path, data=json.dumps(body), headers=sent) as answer:
            return answer.status, json.loads(await answer.text())

    async def made(self, path: str, body: Any) -> Any:
        """What a creation answers; it succeeds."""
        code, answer = await self.send("POST", path, body)
        assert code == 201, answer
        return answer


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client of a server without controllers."""
    server = extended_server(built_in_api(), TOKEN)
    url = await server.start()
    async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {TOKEN}"}) as session:
        yield Client(session)
    await server.stop()


def a_pod(name: str = "web", **spec: Any) -> Any:
    """A pod with one container."""
    spec = {"containers": [{"name": "main", "image": "app:1"}], **spec}
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}


def applied(expression: str) -> Any:
    """A mutation that merges a configuration."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression: str) -> Any:
    """A mutation that is a JSON patch."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def a_policy(*mutations: Any, name: str = "p", **spec: Any) -> Any:
    """A policy about the creation of pods."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    constraints = {"resourceRules": [rule], **spec.pop("matchConstraints", {})}
    given = {"matchConstraints": constraints, "mutations": list(mutations), "reinvocationPolicy": "Never"}
    return {"metadata": {"name": name}, "spec": {"failurePolicy": "Fail", **given, **spec}}


def a_binding(name: str = "p", **spec: Any) -> Any:
    """A binding of the policy with the same name."""
    return {"metadata": {"name": name}, "spec": {"policyName": name, **spec}}


SCHEDULER = applied('Object{spec: Object.spec{schedulerName: "plimsoll"}}')
LABEL = patched('[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b"), value: "c"}]')

APP = 'path: "/metadata/labels/app"'


async def test_a_configuration_is_merged_into_a_new_pod(client: Client) -> None:
    added = 'Object.spec.initContainers{name: "side", image: "side:1", restartPolicy: "Always"}'
    await client.made(
        POLICIES, a_policy(applied(f"Object{{spec: Object.spec{{initContainers: [{added}]}}}}"))
    )
    await client.made(BINDINGS, a_binding())

    pod = await client.made(PODS, a_pod(initContainers=[{"name": "first", "image": "first:1"}]))

    assert [one["name"] for one in pod["spec"]["initContainers"]] == ["first", "side"]
    assert pod["spec"]["initContainers"][1]["imagePullPolicy"] == "IfNotPresent"


async def test_a_patch_changes_a_new_pod_and_later_mutations_see_it(client: Client) -> None:
    seen = applied('Object{metadata: Object.metadata{labels: {"seen": object.metadata.labels["a/b"]}}}')
    await client.made(POLICIES, a_policy(LABEL, seen))
    await client.made(BINDINGS, a_binding())

    pod = await client.made(PODS, a_pod())

    assert pod["metadata"]["labels"] == {"app": "web", "a/b": "c", "seen": "c"}


@pytest.mark.parametrize(
    ("operations", "labels"),
    [
        (f'[JSONPatch{{op: "test", {APP}, value: "db"}}, JSONPatch{{op: "remove", {APP}}}]', {"app": "web"}),
        (
            f'[JSONPatch{{op: "test", {APP}, value: "web"}}, JSONPatch{{op: "replace", {APP}, value: "x"}}]',
            {"app": "x"},
        ),
        (
            '[JSONPatch{op: "move", from: "/metadata/labels/app", path: "/metadata/labels/was"}]',
            {"was": "web"},
        ),
        (
            'has(object.spec.x) ? [] : [JSONPatch{op: "add", path: "/metadata/labels", value: {"n": "m"}}]',
            {"n": "m"},
        ),
    ],
)
async def test_operations_of_a_patch(client: Client, operations: str, labels: Any) -> None:
    await client.made(POLICIES, a_policy(patched(operations)))
    await client.made(BINDINGS, a_binding())

    assert (await client.made(PODS, a_pod()))["metadata"]["labels"] == labels


async def test_a_policy_without_a_binding_does_nothing(client: Client) -> None:
    await client.made(POLICIES, a_policy(SCHEDULER))

    assert (await client.made(PODS, a_pod()))["spec"]["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize(
    ("spec", "binding"),
    [
        ({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'db'"}]}, {}),
        ({"matchConstraints": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}, {}),
        ({"matchConstraints": {"objectSelector": {"matchLabels": {"app": "db"}}}}, {}),
        ({}, {"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}),
        ({}, {"matchResources": {"objectSelector": {"matchLabels": {"app": "db"}}}}),
        (
            {
                "matchConstraints": {
                    "excludeResourceRules": [
                        {"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
                    ]
                }
            },
            {},
        ),
    ],
)
async def test_what_a_write_must_match(client: Client, spec: Any, binding: Any) -> None:
    await client.made(POLICIES, a_policy(SCHEDULER, **spec))
    await client.made(BINDINGS, a_binding(**binding))

    assert (await client.made(PODS, a_pod()))["spec"]["schedulerName"] == "default-scheduler"
    change = {"metadata": {"labels": {"a": "b"}}}
    await client.send("PATCH", "/api/v1/namespaces/default", change, "application/merge-patch+json")
    other = a_pod("db")
    other["metadata"]["labels"] = {"app": "db"}
    expected = "default-scheduler" if "excludeResourceRules" in str(spec) else "plimsoll"
    assert (await client.made(PODS, other))["spec"]["schedulerName"] == expected


async def test_an_update_is_changed_where_the_rule_names_it(client: Client) -> None:
    policy = a_policy(LABEL)
    policy["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = ["UPDATE"]
    await client.made(POLICIES, policy)
    await client.made(BINDINGS, a_binding())
    assert "a/b" not in (await client.made(PODS, a_pod()))["metadata"]["labels"]

    patch = {"metadata": {"annotations": {"x": "y"}}}
    _, pod = await client.send("PATCH", f"{PODS}/web", patch, "application/merge-patch+json")

    assert pod["metadata"]["labels"] == {"app": "web", "a/b": "c"}


async def test_variables_parameters_and_the_namespace_are_known(client: Client) -> None:
    variables = [
        {"name": "unused", "expression": "object.spec.nothing"},
        {"name": "who", "expression": "params.data.name"},
        {"name": "twice", "expression": "variables.who + variables.who"},
    ]
    labels = '{"who": variables.twice, "ns": namespaceObject.metadata.name, "op": request.operation}'
    policy = a_policy(
        applied(f"Object{{metadata: Object.metadata{{labels: {labels}}}}}"),
        variables=variables,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    await client.made(POLICIES, policy)
    ref = {"name": "settings", "namespace": "default", "parameterNotFoundAction": "Deny"}
    await client.made(BINDINGS, a_binding(paramRef=ref))
    await client.made(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"name": "ab"}})

    pod = await client.made(PODS, a_pod())

    assert pod["metadata"]["labels"] == {"app": "web", "who": "abab", "ns": "default", "op": "CREATE"}


@pytest.mark.parametrize(
    ("action", "policy", "code"), [("Deny", "Fail", 403), ("Deny", "Ignore", 201), ("Allow", "Fail", 201)]
)
async def test_parameters_that_are_missing(client: Client, action: str, policy: str, code: int) -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    await client.made(POLICIES, a_policy(SCHEDULER, paramKind=kind, failurePolicy=policy))
    ref = {"name": "settings", "namespace": "default", "parameterNotFoundAction": action}
    await client.made(BINDINGS, a_binding(paramRef=ref))

    got, answer = await client.send("POST", PODS, a_pod())

    assert got == code
    if code == 403:
        assert answer["message"] == (
            "policy 'p' with binding 'p' denied request: failed to configure binding: no params found for "
            "policy binding with `Deny` parameterNotFoundAction"
        )
    else:
        assert answer["spec"]["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        (
            applied("Object{spec: Object.spec{schedulerName: object.spec.nothing}}"),
            (
                "expression 'Object{spec: Object.spec{schedulerName: object.spec.nothing}}' "
                "resulted in error: no such key: nothing"
            ),
        ),
        (
            applied("Object{spec: Object.spec{nothing: 1}}"),
            (
                "error applying patch: failed to convert patch object to typed object: "
                ".spec.nothing: field not declared in schema"
            ),
        ),
        (
            applied('Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: "a"}]}}'),
            (
                "error applying patch: invalid ApplyConfiguration: "
                "may not mutate atomic arrays, maps or structs: .spec.tolerations"
            ),
        ),
        (
            patched('[JSONPatch{op: "remove", path: "/spec/nothing"}]'),
            (
                "JSON Patch: error in remove for path: '/spec/nothing': "
                "Unable to remove nonexistent key: nothing: missing value"
            ),
        ),
    ],
)
@pytest.mark.parametrize(("policy", "code"), [("Fail", 403), ("Ignore", 201)])
async def test_a_mutation_that_fails(client: Client, mutation: Any, why: str, policy: str, code: int) -> None:
    await client.made(POLICIES, a_policy(mutation, failurePolicy=policy))
    await client.made(BINDINGS, a_binding())

    got, answer = await client.send("POST", PODS, a_pod())

    assert got == code, answer
    if code == 403:
        assert answer["message"] == f"policy 'p' with binding 'p' denied request: {why}"


async def test_an_earlier_policy_sees_what_a_later_one_did(client: Client) -> None:
    copy_of = 'Object{metadata: Object.metadata{labels: {"seen": object.spec.schedulerName}}}'
    for name, again in (("a-once", "Never"), ("b-twice", "IfNeeded")):
        key = "once" if again == "Never" else "twice"
        expression = copy_of.replace('"seen"', f'"{key}"')
        await client.made(POLICIES, a_policy(applied(expression), name=name, reinvocationPolicy=again))
        await client.made(BINDINGS, a_binding(name))
    await client.made(POLICIES, a_policy(SCHEDULER, name="c"))
    await client.made(BINDINGS, a_binding("c"))

    pod = await client.made(PODS, a_pod())

    assert pod["metadata"]["labels"] == {"app": "web", "once": "default-scheduler", "twice": "plimsoll"}


async def test_policies_do_not_change_policies(client: Client) -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    policy = a_policy(patched('[JSONPatch{op: "add", path: "/metadata/labels", value: {"x": "y"}}]'))
    policy["spec"]["matchConstraints"]["resourceRules"] = [everything]
    await client.made(POLICIES, policy)
    await client.made(BINDINGS, a_binding())

    other = await client.made(POLICIES, {**copy.deepcopy(policy), "metadata": {"name": "q"}})

    assert "labels" not in other["metadata"]
    assert (await client.made(CONFIG_MAPS, {"metadata": {"name": "c"}}))["metadata"]["labels"] == {"x": "y"}
