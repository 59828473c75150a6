"""The variable ``authorizer`` of admission expressions, by roles and without them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from roadstead.assembly import ALWAYS_ALLOW, RBAC, built_in_api, extended_server

TOKEN = "for-tests"
ADMISSION, ROLES = "/apis/admissionregistration.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"


class Client:
    """Sends requests as a user."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def send(self, path: str, body: Any, user: str = "", method: str = "POST") -> tuple[int, Any]:
        """The code and the body of an answer."""
        headers = {"Impersonate-User": user} if user else {}
        async with self.session.request(method, path, json=body, headers=headers) as answer:
            return answer.status, json.loads(await answer.text())

    async def judge(self, validations: list[Any]) -> tuple[int, Any]:
        """Create a policy of ConfigMaps, and its binding."""
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["configmaps"],
        }
        spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}
        made = await self.send(
            f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec}
        )
        bound = {"policyName": "p", "validationActions": ["Deny"]}
        await self.send(
            f"{ADMISSION}/validatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": bound}
        )
        return made


@pytest.fixture
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client of a server with two other users: bob, and an account that reads pods."""
    server = extended_server(built_in_api(), TOKEN, authorization=getattr(request, "param", RBAC))
    url = await server.start()
    async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {TOKEN}"}) as session:
        found = Client(session)
        await grant(found, {"kind": "User", "name": "bob"}, "bob", BOB)
        pods = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
        await grant(found, {"kind": "ServiceAccount", "namespace": "web", "name": "sa"}, "sa", pods)
        yield found
    await server.stop()


BOB = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": ["get"]},
    {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["patch"]},
    {"nonResourceURLs": ["/healthz"], "verbs": ["get"]},
]


async def grant(client: Client, subject: Any, name: str, rules: list[Any]) -> None:
    """A ClusterRole that is bound to somebody."""
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    of = subject if subject["kind"] == "ServiceAccount" else {**subject, "apiGroup": group}
    for path, body in (
        ("clusterroles", {"rules": rules}),
        ("clusterrolebindings", {"roleRef": role, "subjects": [of]}),
    ):
        code, answer = await client.send(f"{ROLES}/{path}", {"metadata": {"name": name}, **body})
        assert code == 201, answer


#: Expressions that hold for bob.
HOLD = [
    "authorizer.group('').resource('configmaps').namespace('default').check('create').allowed()",
    "authorizer.requestResource.check('create').allowed()",
    "authorizer.requestResource.name('other').check('create').allowed()",
    "!authorizer.requestResource.check('delete').allowed()",
    "authorizer.group('').resource('secrets').name('s').check('get').allowed()",
    "!authorizer.group('').resource('secrets').name('t').check('get').allowed()",
    "!authorizer.group('').resource('secrets').check('get').allowed()",
    "authorizer.group('apps').resource('deployments').subresource('scale').check('patch').allowed()",
    "!authorizer.group('apps').resource('deployments').check('patch').allowed()",
    "authorizer.path('/healthz').check('get').allowed()",
    "!authorizer.path('/metrics').check('get').allowed()",
    "authorizer.serviceAccount('web', 'sa').group('').resource('pods').check('get').allowed()",
    "!authorizer.serviceAccount('web', 'other').group('').resource('pods').check('get').allowed()",
    "authorizer.group('').resource('configmaps').labelSelector('a=b').check('create').allowed()",
    "authorizer.requestResource.check('create').reason().startsWith('RBAC: allowed by')",
    "authorizer.requestResource.check('delete').reason() == ''",
    "!authorizer.requestResource.check('delete').errored()",
    "authorizer.requestResource.check('delete').error() == ''",
]


async def test_an_expression_asks_what_the_sender_may_do(client: Client) -> None:
    """The first that does not hold is what the answer names."""
    code, made = await client.judge([{"expression": one, "message": one} for one in HOLD])
    assert code == 201, made

    code, answer = await client.send(MAPS, {"metadata": {"name": "c"}}, "bob")
    assert code == 201, answer["message"]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
        ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
        (
            "authorizer.serviceAccount('A', 'b').path('/').check('get').allowed()",
            "Invalid service account namespace",
        ),
        (
            "authorizer.serviceAccount('a', 'B').path('/').check('get').allowed()",
            "Invalid service account name",
        ),
    ],
)
async def test_what_cannot_be_asked_is_an_error(client: Client, expression: str, why: str) -> None:
    await client.judge([{"expression": expression}])
    code, answer = await client.send(MAPS, {"metadata": {"name": "c"}}, "bob")
    assert code == 422
    assert f"resulted in error: {why}" in answer["message"]


@pytest.mark.parametrize(
    "expression",
    [
        "authorizer.check('get').allowed()",
        "authorizer.group('').check('get').allowed()",
        "authorizer.path('/').resource('pods').check('get').allowed()",
        "authorizer.requestResource",
    ],
)
async def test_a_policy_that_asks_wrongly_is_refused(client: Client, expression: str) -> None:
    code, answer = await client.judge([{"expression": expression}])
    assert (code, answer["reason"]) == (422, "Invalid")


async def test_a_message_cannot_ask(client: Client) -> None:
    asks = "authorizer.requestResource.check('get').reason()"
    code, answer = await client.judge([{"expression": "true", "messageExpression": asks}])
    assert (code, answer["reason"]) == (422, "Invalid")


@pytest.mark.parametrize("client", [ALWAYS_ALLOW], indirect=True)
async def test_without_roles_everybody_may_do_everything(client: Client) -> None:
    await client.judge([{"expression": "authorizer.path('/x').check('get').allowed()"}])
    code, answer = await client.send(MAPS, {"metadata": {"name": "c"}}, "bob")
    assert code == 201, answer
