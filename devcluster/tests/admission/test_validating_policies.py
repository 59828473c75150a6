"""ValidatingAdmissionPolicies over HTTP: refusals, warnings, deletions, parameters."""

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
POLICIES = f"{GROUP}/validatingadmissionpolicies"
BINDINGS = f"{GROUP}/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a server without controllers."""
    server = extended_server(built_in_api(), TOKEN)
    url = await server.start()
    async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {TOKEN}"}) as session:
        yield session
    await server.stop()


async def sent(session: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> Any:
    """The code, the body and the warnings of an answer."""
    headers = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    async with session.request(method, path, data=json.dumps(body), headers=headers) as answer:
        return answer.status, await answer.json(), answer.headers.getall("Warning", [])


async def bind(session: aiohttp.ClientSession, *actions: str, ref: Any = None, **spec: Any) -> None:
    """A policy and its binding."""
    validations = [{"expression": "!has(object.data) || object.data.size() < 2", "message": "too much"}]
    given = {"matchConstraints": {"resourceRules": [RULE]}, "validations": validations, **spec}
    policy = {"metadata": {"name": "p"}, "spec": copy.deepcopy(given)}
    binding: Any = {
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": list(actions)},
    }
    if ref is not None:
        binding["spec"]["paramRef"] = ref
    for path, obj in ((POLICIES, policy), (BINDINGS, binding)):
        code, answer, _ = await sent(session, "POST", path, obj)
        assert code == 201, answer


SMALL = {"metadata": {"name": "c"}, "data": {"a": "b"}}
LARGE = {"metadata": {"name": "c"}, "data": {"a": "b", "c": "d"}}


async def test_what_does_not_hold_is_refused(session: aiohttp.ClientSession) -> None:
    await bind(session, "Deny")

    code, answer, _ = await sent(session, "POST", MAPS, LARGE)

    assert (code, answer["reason"]) == (422, "Invalid")
    assert answer["message"] == (
        'configmaps "c" is forbidden: '
        "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too much"
    )
    assert (await sent(session, "POST", MAPS, SMALL))[0] == 201
    assert (await sent(session, "PATCH", f"{MAPS}/c", {"data": {"c": "d"}}))[0] == 422


async def test_a_deletion_is_judged_by_the_old_object(session: aiohttp.ClientSession) -> None:
    kept = {"expression": "request.operation != 'DELETE' || !has(oldObject.data)", "reason": "Forbidden"}
    await bind(session, "Deny", validations=[kept])
    await sent(session, "POST", MAPS, SMALL)

    code, answer, _ = await sent(session, "DELETE", f"{MAPS}/c")

    assert (code, answer["reason"]) == (403, "Forbidden")
    await sent(session, "PATCH", f"{MAPS}/c", {"data": None})
    assert (await sent(session, "DELETE", f"{MAPS}/c"))[0] == 200


async def test_a_warning_lets_the_write_pass(session: aiohttp.ClientSession) -> None:
    await bind(session, "Warn", "Audit")

    code, _, warnings = await sent(session, "POST", MAPS, LARGE)

    text = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': too much"
    assert (code, warnings) == (201, [f'299 - "{text}"'])


@pytest.mark.parametrize(("policy", "code"), [("Fail", 422), ("Ignore", 201)])
async def test_an_expression_that_fails(session: aiohttp.ClientSession, policy: str, code: int) -> None:
    await bind(session, "Deny", validations=[{"expression": "object.nothing == 1"}], failurePolicy=policy)

    assert (await sent(session, "POST", MAPS, SMALL))[0] == code


async def test_parameters_by_a_selector(session: aiohttp.ClientSession) -> None:
    bound = {"expression": "!has(object.data) || object.data.size() <= int(params.data.most)"}
    ref: Any = {
        "selector": {"matchLabels": {"is": "limit"}},
        "namespace": "kube-system",
        "parameterNotFoundAction": "Deny",
    }
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    await bind(session, "Deny", ref=ref, paramKind=kind, validations=[bound])
    code, answer, _ = await sent(session, "POST", MAPS, SMALL)
    assert (code, answer["reason"]) == (422, "Invalid")

    ref.pop("parameterNotFoundAction")
    await sent(session, "DELETE", f"{BINDINGS}/b")
    limit = {"metadata": {"name": "limit", "labels": {"is": "limit"}}, "data": {"most": "1"}}
    assert (await sent(session, "POST", "/api/v1/namespaces/kube-system/configmaps", limit))[0] == 201
    binding: Any = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    binding["spec"]["paramRef"] = {**ref, "parameterNotFoundAction": "Deny"}
    await sent(session, "POST", BINDINGS, binding)
    assert (await sent(session, "POST", MAPS, SMALL))[0] == 201
    assert (await sent(session, "PATCH", f"{MAPS}/c", {"data": {"x": "y"}}))[0] == 422


async def test_evictions_and_bindings_are_judged_by_their_own_objects(session: aiohttp.ClientSession) -> None:
    rule = {**RULE, "operations": ["CREATE"], "resources": ["pods/eviction", "pods/binding"]}
    told = "request.subResource + ' of ' + request.name + ': ' + object.kind + ' by ' + request.options.kind"
    denied = {"expression": "request.dryRun", "messageExpression": told}
    await bind(session, "Deny", matchConstraints={"resourceRules": [rule]}, validations=[denied])
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert (await sent(session, "POST", pods, pod))[0] == 201

    body = {"metadata": {"name": "p"}}
    evicted = await sent(session, "POST", f"{pods}/p/eviction", body)
    bound = await sent(session, "POST", f"{pods}/p/binding", {**body, "target": {"name": "n"}})

    assert [one[0] for one in (evicted, bound)] == [422, 422]
    assert evicted[1]["message"].endswith("denied request: eviction of p: Eviction by CreateOptions")
    assert bound[1]["message"].endswith("denied request: binding of p: Binding by CreateOptions")
    assert "nodeName" not in (await sent(session, "GET", f"{pods}/p"))[1]["spec"]
    assert (await sent(session, "POST", f"{pods}/p/eviction?dryRun=All", body))[0] == 201
