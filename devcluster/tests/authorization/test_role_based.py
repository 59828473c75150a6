"""Authorization by roles over HTTP: refusals, bindings, accounts, impersonation, escalation, aggregation."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from roadstead.assembly import RBAC, built_in_api, extended_server

TOKEN = "for-tests"
RULES = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
BOB = {"Impersonate-User": "bob", "Impersonate-Group": "team"}
IN_DEFAULT = ' in the namespace "default"'
READER = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
WRITER = {
    "apiGroups": ["rbac.authorization.k8s.io"],
    "resources": ["roles", "rolebindings"],
    "verbs": ["create", "update", "patch"],
}


class Client:
    """Sends requests of the administrator, or of others."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def send(self, method: str, path: str, body: Any = None, token: str = TOKEN, **headers: str) -> Any:
        """One request: its code and its body."""
        sent = {"Content-Type": "application/json", **headers}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        async with self.session.request(method, path, data=json.dumps(body), headers=sent) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text.startswith("{") else text

    async def bound(self, *rules: Any, subject: Any = None) -> None:
        """Bind a role with rules in the namespace default; to bob unless said otherwise."""
        subject = subject or {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob"}
        role = {"metadata": {"name": "r"}, "rules": list(rules)}
        assert (await self.send("POST", f"{RULES}/namespaces/default/roles", role))[0] == 201
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
        binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}
        assert (await self.send("POST", f"{RULES}/namespaces/default/rolebindings", binding))[0] == 201


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client of a server that authorizes by roles."""
    server = extended_server(built_in_api(), TOKEN, authorization=RBAC)
    url = await server.start()
    async with aiohttp.ClientSession(url) as session:
        yield Client(session)
    await server.stop()


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        (
            *("GET", PODS),
            'pods is forbidden: User "bob" cannot list resource "pods" in API group ""' + IN_DEFAULT,
        ),
        (
            *("GET", "/api/v1/pods?watch=1"),
            'pods is forbidden: User "bob" cannot watch resource "pods" in API group "" at the cluster scope',
        ),
        (
            *("DELETE", "/apis/apps/v1/namespaces/default/deployments/x"),
            (
                'deployments.apps "x" is forbidden: User "bob" cannot delete resource "deployments" '
                f'in API group "apps"{IN_DEFAULT}'
            ),
        ),
        (
            *("GET", f"{PODS}/x/status"),
            'pods "x" is forbidden: User "bob" cannot get resource "pods/status" in API group ""'
            + IN_DEFAULT,
        ),
        (
            *("DELETE", PODS),
            'pods is forbidden: User "bob" cannot deletecollection resource "pods" in API group ""'
            + IN_DEFAULT,
        ),
        ("GET", "/metrics", 'forbidden: User "bob" cannot get path "/metrics"'),
    ],
)
async def test_refusals_have_the_words_of_an_api_server(
    client: Client, method: str, path: str, message: str
) -> None:
    code, answer = await client.send(method, path, **BOB)

    assert (code, answer["reason"], answer["message"]) == (403, "Forbidden", message)


async def test_a_binding_holds_in_its_namespace_until_it_is_deleted(client: Client) -> None:
    await client.bound(READER)

    assert (await client.send("GET", PODS, **BOB))[0] == 200
    assert (await client.send("GET", "/api/v1/namespaces/kube-system/pods", **BOB))[0] == 403
    await client.send("DELETE", f"{RULES}/namespaces/default/rolebindings/b")
    assert (await client.send("GET", PODS, **BOB))[0] == 403


async def test_an_account_is_its_token_and_no_longer_than_it_exists(client: Client) -> None:
    await client.bound(READER, subject={"kind": "ServiceAccount", "name": "acc", "namespace": "default"})
    await client.send("POST", ACCOUNTS, {"metadata": {"name": "acc"}})
    _, answer = await client.send("POST", f"{ACCOUNTS}/acc/token", {"spec": {}})
    token = answer["status"]["token"]

    assert (await client.send("GET", PODS, token=token))[0] == 200
    assert (await client.send("GET", "/api/v1/secrets", token=token))[0] == 403
    await client.send("DELETE", f"{ACCOUNTS}/acc")
    assert (await client.send("GET", PODS, token=token))[0] == 401
    await client.send("POST", ACCOUNTS, {"metadata": {"name": "acc"}})
    assert (await client.send("GET", PODS, token=token))[0] == 401  # made again, with another uid


async def test_only_who_may_impersonate_does(client: Client) -> None:
    await client.send("POST", ACCOUNTS, {"metadata": {"name": "acc"}})
    _, answer = await client.send("POST", f"{ACCOUNTS}/acc/token", {"spec": {}})
    masters = {"Impersonate-User": "eve", "Impersonate-Group": "system:masters"}

    code, refused = await client.send("GET", PODS, token=answer["status"]["token"], **masters)

    assert (code, refused["details"]) == (403, {"name": "eve", "kind": "users"})
    assert (await client.send("GET", PODS, **masters))[0] == 200
    _, review = await client.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, **BOB)
    assert review["status"]["userInfo"] == {"username": "bob", "groups": ["team", "system:authenticated"]}


async def test_who_shows_no_token_is_anonymous(client: Client) -> None:
    assert (await client.send("GET", "/version", token=""))[0] == 200
    code, answer = await client.send("GET", PODS, token="")
    assert (code, answer["message"].split(" cannot")[0]) == (
        403,
        'pods is forbidden: User "system:anonymous"',
    )
    assert (await client.send("GET", PODS, token="wrong"))[0] == 401


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        ([READER], ""),
        (
            [{"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "watch"]}],
            (
                '{APIGroups:[""], Resources:["pods"], Verbs:["watch"]}\n'
                '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "watch"]}'
            ),
        ),
    ],
)
async def test_roles_cannot_grant_what_their_writer_does_not_have(
    client: Client, rules: Any, missing: str
) -> None:
    await client.bound(READER, WRITER)
    role = {"metadata": {"name": "more"}, "rules": rules}

    code, answer = await client.send("POST", f"{RULES}/namespaces/default/roles", role, **BOB)

    if not missing:
        assert code == 201
        return
    assert (code, answer["message"]) == (
        403,
        (
            'roles.rbac.authorization.k8s.io "more" is forbidden: user "bob" '
            '(groups=["team" "system:authenticated"]) '
            f"is attempting to grant RBAC permissions not currently held:\n{missing}"
        ),
    )


@pytest.mark.parametrize(("role", "code"), [("view", 403), ("none", 404)])
async def test_nor_can_bindings(client: Client, role: str, code: int) -> None:
    await client.bound(READER, WRITER)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    binding = {"metadata": {"name": "more"}, "roleRef": reference, "subjects": []}

    assert (await client.send("POST", f"{RULES}/namespaces/default/rolebindings", binding, **BOB))[0] == code


async def test_an_aggregated_role_follows_its_parts(client: Client) -> None:
    aggregation = {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}
    whole = {"metadata": {"name": "whole"}, "aggregationRule": aggregation}
    part = {"metadata": {"name": "part", "labels": {"x": "y"}}, "rules": [READER]}

    await client.send("POST", f"{RULES}/clusterroles", whole)
    await client.send("POST", f"{RULES}/clusterroles", part)
    _, answer = await client.send("GET", f"{RULES}/clusterroles/whole")
    assert answer["rules"] == [READER]
    await client.send("DELETE", f"{RULES}/clusterroles/part")
    assert not (await client.send("GET", f"{RULES}/clusterroles/whole"))[1]["rules"]
    _, view = await client.send("GET", f"{RULES}/clusterroles/view")
    assert any("pods" in one["resources"] for one in view["rules"])


async def test_reviews_say_what_decides(client: Client) -> None:
    await client.bound(READER)
    asked: Any = {
        "spec": {
            "user": "bob",
            "resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"},
        }
    }

    _, answer = await client.send("POST", f"{REVIEWS}/subjectaccessreviews", asked)
    assert answer["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by RoleBinding "b/default" of Role "r" to User "bob"',
    }
    asked["spec"]["resourceAttributes"]["verb"] = "delete"
    _, answer = await client.send("POST", f"{REVIEWS}/subjectaccessreviews", asked)
    assert answer["status"] == {"allowed": False}
    del asked["spec"]["user"]
    _, answer = await client.send("POST", f"{REVIEWS}/selfsubjectaccessreviews", asked)
    assert answer["status"] == {"allowed": True}  # a member of system:masters
    rules = {"spec": {"namespace": "default"}}
    _, answer = await client.send("POST", f"{REVIEWS}/selfsubjectrulesreviews", rules, **BOB)
    assert READER in answer["status"]["resourceRules"]
