"""On a real API server, tenants with every right on Eviction records in their namespace cannot forge one.

The development cluster evaluates no admission policies; tests/deploy evaluates the expressions.
"""

from __future__ import annotations

import asyncio
import copy
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.manifests import NAME, run
from e2e.conftest import DEFINITIONS
from e2e.entitlement import entitled
from e2e.polls import eventually
from e2e.speaker import MERGE, Answer, Speaker, speaking

Obj = dict[str, Any]
Request = tuple[str, str, Any, str]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        "PLIMSOLL_E2E_KUBECONFIG" not in os.environ,
        reason="ways round the admission policy of records were not tried on a real API server, for "
        "PLIMSOLL_E2E_KUBECONFIG names none; its expressions were evaluated",
    ),
]

JSON, JSON_PATCH, APPLY = "application/json", "application/json-patch+json", "application/apply-patch+yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
DEFINITION = f"{DEFINITIONS}/evictions.plimsoll.dev"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "kept", "uid": "0"}
REFUSED = "only the operator"
#: What a tenant may have been given: more than the default roles, which have no right on our kinds.
EVERYTHING = [{"apiGroups": ["plimsoll.dev"], "resources": ["*"], "verbs": ["*"]}]


@dataclass(frozen=True, slots=True)
class Tenancy:
    """A namespace with an operator's records, and who speaks about them.

    Attributes:
        speaker: The administrator.
        tokens: Of the operator, and of service accounts of the namespace: ``default`` with every right on
            records and the role ``edit``, ``editor`` with that role alone, ``plimsoll`` as the first.
    """

    namespace: str
    kubeconfig: Path
    tokens: dict[str, str]

    def path(self, version: str = "v1alpha1") -> str:
        """The collection of records."""
        return f"/apis/plimsoll.dev/{version}/namespaces/{self.namespace}/evictions"

    def config_of(self, who: str) -> Path:
        """The kubeconfig of an account."""
        config = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))
        for user in config["users"]:
            user["user"] = {"token": self.tokens[who]}
        path = self.kubeconfig.with_name(f"{self.namespace}-{who}.kubeconfig")
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path

    async def ask(self, who: str, request: Request, version: str = "v1alpha1", **query: str) -> Answer:
        """Send a request of an account about a record, or about all of them."""
        method, rest, body, sends = request
        if sends == APPLY:
            query |= {"fieldManager": "a-tenant", "force": "true"}
        config = await asyncio.to_thread(self.config_of, who)
        async with speaking(config) as somebody:
            return await somebody.request(method, self.path(version) + rest, body, sends=sends, **query)


def record(**metadata: Any) -> Obj:
    """A record as the operator creates it."""
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Eviction",
        "metadata": {"name": f"web-{uuid.uuid4().hex[:8]}", **metadata},
        "spec": {
            "pod": {"name": "web", "namespace": "any", "uid": "1"},
            "policy": "tidy",
            "strategy": "PodLifeTime",
            "mode": "Approve",
            "reason": "old",
            "fromNode": "n1",
        },
    }


def binding_of(account: str, namespace: str, role: str) -> Obj:
    """A RoleBinding for a service account of a namespace."""
    kind = "ClusterRole" if role == "edit" else "Role"
    return {
        "metadata": {"name": f"{account}-{role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


async def account(speaker: Speaker, namespace: str, name: str, roles: list[str]) -> str:
    """The token of a service account with roles in its namespace."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await speaker.install(accounts, {"metadata": {"name": name}, "spec": {}})
    for role in roles:
        path = f"{RBAC}/namespaces/{namespace}/rolebindings"
        (await speaker.request("POST", path, binding_of(name, namespace, role))).accepted()
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = (await speaker.request("POST", f"{accounts}/{name}/token", wanted)).accepted()["status"][
        "token"
    ]
    return token


async def prepare(kubeconfig: Path, stack: AsyncExitStack) -> Tenancy:
    """Install deploy/enforce, and give a tenant a namespace; the policy is in force."""
    speaker = await stack.enter_async_context(speaking(kubeconfig))
    operator = await stack.enter_async_context(entitled(speaker, kubeconfig, "enforce", ""))
    namespace = f"tenant-{uuid.uuid4().hex[:8]}"
    path = f"/api/v1/namespaces/{namespace}"
    (await speaker.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})).accepted()
    stack.push_async_callback(speaker.request, "DELETE", path)
    role = {"metadata": {"name": "records"}, "rules": EVERYTHING}
    (await speaker.request("POST", f"{RBAC}/namespaces/{namespace}/roles", role)).accepted()
    tokens = {"operator": operator, "editor": await account(speaker, namespace, "editor", ["edit"])}
    for name in ("default", NAME):
        tokens[name] = await account(speaker, namespace, name, ["edit", "records"])
    tenancy = Tenancy(namespace, kubeconfig, tokens)
    tried = ("POST", "", record(), JSON)
    await eventually(lambda: tenancy.ask("default", tried, dryRun="All"), lambda each: each.status == 403)
    return tenancy


@pytest.fixture(scope="module")
def tenancy(defined: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenancy]:
    """A tenant, and the operator's account, on the named API server."""
    kubeconfig = tmp_path_factory.mktemp("tenant") / "kubeconfig"
    kubeconfig.write_text(defined.read_text(encoding="utf-8"), encoding="utf-8")
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield runner.run(prepare(kubeconfig, stack))
        finally:
            runner.run(stack.aclose())


async def made(tenancy: Tenancy, **metadata: Any) -> Obj:
    """A record that the operator has created and said to be proposed."""
    created = (await tenancy.ask("operator", ("POST", "", record(**metadata), JSON))).accepted()
    status: Request = (
        "PATCH",
        f"/{created['metadata']['name']}/status",
        {"status": {"phase": "Planned"}},
        MERGE,
    )
    return (await tenancy.ask("operator", status)).accepted()


async def found(tenancy: Tenancy, name: str = "") -> Any:
    """What the API server has of one record, or of all."""
    async with speaking(tenancy.kubeconfig) as speaker:
        return (await speaker.request("GET", f"{tenancy.path()}{name and f'/{name}'}")).body


def without_managers(one: Obj) -> Obj:
    """A record but for the bookkeeping of server-side apply."""
    metadata = {key: value for key, value in one["metadata"].items() if key != "managedFields"}
    return {**one, "metadata": metadata}


CREATING: dict[str, Callable[[], Request]] = {
    "create": lambda: ("POST", "", record(), JSON),
    "create-with-a-status": lambda: ("POST", "", {**record(), "status": {"phase": "Evicted"}}, JSON),
    "create-approved": lambda: ("POST", "", record(annotations={"plimsoll.dev/approved": "true"}), JSON),
    "generateName": lambda: ("POST", "", record(name=None, generateName="web-"), JSON),
    "apply": lambda: ("PATCH", "/applied", record(name="applied"), APPLY),
}


def merged(one: Obj, part: str, **fields: Any) -> Obj:
    """A record with other fields in one part."""
    other = copy.deepcopy(one)
    other[part] = {**other.get(part, {}), **fields}
    return other


def applied(part: str, **fields: Any) -> Callable[[Obj], tuple[Any, str]]:
    """A part of a record, by server-side apply."""

    def body(one: Obj) -> tuple[Any, str]:
        head = {"apiVersion": one["apiVersion"], "kind": one["kind"]}
        named = {"name": one["metadata"]["name"]}
        if part == "metadata":
            return {**head, "metadata": {**named, **fields}}, APPLY
        return {**head, "metadata": named, part: fields}, APPLY

    return body


def replaced(part: str, **fields: Any) -> Callable[[Obj], tuple[Any, str]]:
    """The whole record with other fields in a part, by PUT."""
    return lambda one: (merged(one, part, **fields), JSON)


def patched(part: str, **fields: Any) -> Callable[[Obj], tuple[Any, str]]:
    """Fields of a part, by JSON merge patch."""
    return lambda _: ({part: fields}, MERGE)


def pointed(path: str, value: Any) -> Callable[[Obj], tuple[Any, str]]:
    """One field, by JSON patch."""
    return lambda _: ([{"op": "add", "path": path, "value": value}], JSON_PATCH)


CHANGING: dict[str, tuple[str, Callable[[Obj], tuple[Any, str]]]] = {
    "status-put": ("/status", replaced("status", phase="Evicted")),
    "status-merge-patch": ("/status", patched("status", phase="Evicted")),
    "status-json-patch": ("/status", pointed("/status/phase", "Evicted")),
    "status-apply": ("/status", applied("status", phase="Evicted")),
    "spec-put": ("", replaced("spec", targetNode="n2")),
    "spec-merge-patch": ("", patched("spec", targetNode="n2")),
    "spec-json-patch": ("", pointed("/spec/targetNode", "n2")),
    "spec-apply": ("", applied("spec", **record()["spec"], targetNode="n2")),
    "labels-merge-patch": ("", patched("metadata", labels={"plimsoll.dev/policy": "other"})),
    "labels-apply": ("", applied("metadata", labels={"plimsoll.dev/policy": "other"})),
    "finalizers-put": ("", replaced("metadata", finalizers=["example.com/hold"])),
    "finalizers-json-patch": ("", pointed("/metadata/finalizers", ["example.com/hold"])),
    "finalizers-apply": ("", applied("metadata", finalizers=["example.com/hold"])),
    "owners-merge-patch": ("", patched("metadata", ownerReferences=[OWNER])),
    "owners-apply": ("", applied("metadata", ownerReferences=[OWNER])),
}


@pytest.mark.parametrize("who", ["default", NAME, "editor"])
@pytest.mark.parametrize("way", CREATING)
async def test_a_tenant_creates_no_record(tenancy: Tenancy, way: str, who: str) -> None:
    """Whatever rights it has; a service account of the operator's name in another namespace is another."""
    before = (await found(tenancy))["items"]

    answer = await tenancy.ask(who, CREATING[way]())

    assert answer.status == 403
    assert (REFUSED in answer.message) is (who != "editor"), "RBAC refuses whom it gives no right"
    assert (await found(tenancy))["items"] == before


@pytest.mark.parametrize("way", CHANGING)
async def test_a_tenant_changes_nothing_that_a_record_says(tenancy: Tenancy, way: str) -> None:
    """By each verb, and by the subresource; the schema refuses another spec before the policy does."""
    one = await made(tenancy)
    name = one["metadata"]["name"]
    rest, body = CHANGING[way]
    method = "PUT" if way.endswith("put") else "PATCH"

    answer = await tenancy.ask("default", (method, f"/{name}{rest}", *body(one)))

    assert (answer.status == 403 and REFUSED in answer.message) or (
        answer.status == 422 and way.startswith("spec") and "never changes" in answer.message
    ), answer
    assert without_managers(await found(tenancy, name)) == without_managers(one)


async def test_metadata_is_not_changed_by_the_subresource(tenancy: Tenancy) -> None:
    """The server takes only the status of what is sent there."""
    one = await made(tenancy)
    name = one["metadata"]["name"]
    other = merged(
        one, "metadata", labels={"a": "b"}, finalizers=["example.com/hold"], ownerReferences=[OWNER]
    )

    await tenancy.ask("default", ("PUT", f"/{name}/status", other, JSON))

    assert without_managers(await found(tenancy, name)) == without_managers(one)


async def test_a_record_that_a_tenant_deletes_is_not_created_again(tenancy: Tenancy) -> None:
    """Deleting is left to RBAC, foreground deletion and its finalizer, too."""
    one = await made(tenancy)
    name = one["metadata"]["name"]
    again = {**one, "metadata": {"name": name, "namespace": tenancy.namespace}}

    gone = await tenancy.ask("default", ("DELETE", f"/{name}", {"propagationPolicy": "Foreground"}, JSON))
    assert gone.status == 200
    await eventually(lambda: found(tenancy, name), lambda answer: answer.get("code") == 404)

    answer = await tenancy.ask("default", ("POST", "", again, JSON))
    assert answer.status == 403
    assert REFUSED in answer.message


async def test_a_tenant_answers_and_takes_away_what_holds_a_record(tenancy: Tenancy) -> None:
    """As an approval and the garbage collector do."""
    one = await made(tenancy, finalizers=["example.com/hold"], ownerReferences=[OWNER])
    name = one["metadata"]["name"]
    change = {"annotations": {"plimsoll.dev/approved": "true"}, "finalizers": None, "ownerReferences": None}

    answer = await tenancy.ask("default", ("PATCH", f"/{name}", {"metadata": change}, MERGE))

    metadata = answer.accepted()["metadata"]
    assert metadata["annotations"] == {"plimsoll.dev/approved": "true"}
    assert not {"finalizers", "ownerReferences"} & set(metadata)


async def test_another_version_of_the_kind_is_no_way_round(tenancy: Tenancy) -> None:
    one = await made(tenancy)
    name = one["metadata"]["name"]
    async with speaking(tenancy.kubeconfig) as speaker:
        definition = (await speaker.request("GET", DEFINITION)).accepted()
        versions = definition["spec"]["versions"]
        other = {**versions[0], "name": "v1beta1", "storage": False}
        change = {"spec": {"versions": [*versions, other]}}
        (await speaker.request("PATCH", DEFINITION, change, sends=MERGE)).accepted()
        try:
            listed: Request = ("GET", "", None, JSON)
            await eventually(
                lambda: tenancy.ask("default", listed, "v1beta1"), lambda each: each.status == 200
            )
            created = {**record(), "apiVersion": "plimsoll.dev/v1beta1"}
            status = {"status": {"phase": "Evicted"}}

            answers = [
                await tenancy.ask("default", ("POST", "", created, JSON), "v1beta1"),
                await tenancy.ask("default", ("PATCH", f"/{name}/status", status, MERGE), "v1beta1"),
                await tenancy.ask(
                    "default", ("PATCH", f"/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE), "v1beta1"
                ),
            ]
        finally:
            (
                await speaker.request("PATCH", DEFINITION, {"spec": {"versions": versions}}, sends=MERGE)
            ).accepted()

    assert [(each.status, REFUSED in each.message) for each in answers] == [(403, True)] * 3
    assert (await found(tenancy, name))["status"] == one["status"]


@pytest.mark.parametrize(
    ("account_of", "said"),
    [(NAME, "cannot impersonate"), ("", REFUSED)],
    ids=["the-operator", "its-namesake"],
)
def test_a_tenant_does_not_become_the_operator(tenancy: Tenancy, account_of: str, said: str) -> None:
    """The role ``edit`` allows to act as the service accounts of one's own namespace, which are others."""
    user = f"system:serviceaccount:{account_of or tenancy.namespace}:{NAME}"

    with pytest.raises(AssertionError, match=said):
        create_as(tenancy, user)


async def test_editors_of_the_operators_namespace_act_as_the_operator(tenancy: Tenancy) -> None:
    """The way that is left: SECURITY.md names it, for the policy cannot tell them from the operator."""
    path = f"{RBAC}/namespaces/{NAME}/rolebindings"
    async with speaking(tenancy.kubeconfig) as speaker:
        (await speaker.request("POST", path, binding_of("default", tenancy.namespace, "edit"))).accepted()
        try:
            await asyncio.to_thread(create_as, tenancy, f"system:serviceaccount:{NAME}:{NAME}")
        finally:
            (await speaker.request("DELETE", f"{path}/default-edit")).accepted()


def create_as(tenancy: Tenancy, user: str) -> None:
    """Create a record as the account ``default`` that acts as another user.

    Raises:
        AssertionError: It is refused.
    """
    options = (f"--kubeconfig={tenancy.config_of('default')}", f"--namespace={tenancy.namespace}")
    run(
        "kubectl",
        *options,
        f"--as={user}",
        "create",
        "--validate=false",
        "-f-",
        given=yaml.safe_dump(record()),
    )
