"""Questions about admission webhooks that kube-apiserver was asked."""

from __future__ import annotations

from typing import Any

from asked_server import Case

MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
DENY: Any = {"allowed": False}


def a_map(name: str = "one", **data: str) -> Any:
    """A ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "data": data,
    }


def a_pod(name: str = "p", **more: Any) -> Any:
    """A pod."""
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **more}}


def a_deployment() -> Any:
    """A Deployment of no pods."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": a_pod()["spec"]}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "d"}, "spec": spec}


def rules(*resources: str, operations: Any = ("*",), group: str = "", **more: Any) -> Any:
    """Rules of a webhook."""
    one = {"apiGroups": [group], "apiVersions": ["v1"], "resources": list(resources)}
    return [{**one, "operations": list(operations), **more}]


def create(name: str = "one", query: str = "", **data: str) -> Any:
    """The creation of a ConfigMap."""
    return ["POST", f"configmaps{query}", a_map(name, **data)]


def add(path: str, value: Any) -> Any:
    """An operation of a patch."""
    return {"op": "add", "path": path, "value": value}


def noting(key: str) -> Any:
    """An answer that adds the keys it has seen."""
    return {"patch": [add(f"/data/{key}", "was here")]}


def condition(*expressions: str) -> Any:
    """Match conditions."""
    return [{"name": f"c{at}", "expression": one} for at, one in enumerate(expressions)]


AUTHORIZER = {
    "the sender may": "authorizer.group('').resource('pods').namespace('x').check('create').allowed()",
    "somebody may not": (
        "authorizer.serviceAccount('x', 'y').group('').resource('pods').check('create').allowed()"
    ),
    "a path": "authorizer.path('/healthz').check('get').allowed()",
    "the object itself": "authorizer.requestResource.check('update').allowed()",
    "not allowed is no error": "authorizer.serviceAccount('x', 'y').path('/m').check('get').errored()",
}
#: What applying each of these patches to a ConfigMap does.
PATCHES: dict[str, Any] = {
    "a missing path is removed": [{"op": "remove", "path": "/data/none"}],
    "a missing path is replaced": [{"op": "replace", "path": "/data/none", "value": "1"}],
    "a test fails": [{"op": "test", "path": "/data/a", "value": "other"}],
    "a test of what is absent": [{"op": "test", "path": "/data/none", "value": "other"}],
    "an unknown operation": [{"op": "merge", "path": "/data/a", "value": "1"}],
    "below what is absent": [add("/none/a", "1")],
    "below a text": [add("/data/a/b", "1")],
    "a copy from nowhere": [{"op": "copy", "from": "/data/none", "path": "/data/b"}],
    "a move": [{"op": "move", "from": "/data/a", "path": "/data/b"}],
    "without a path": [{"op": "add", "value": "1"}],
    "without a value": [{"op": "add", "path": "/data/b"}],
    "an unknown field": [add("/colour", "red")],
    "a number for a text": [add("/data/b", 1)],
    "a text for a map": [add("/data", "text")],
    "another name": [{"op": "replace", "path": "/metadata/name", "value": "other"}],
    "another namespace": [{"op": "replace", "path": "/metadata/namespace", "value": "other"}],
    "another kind": [{"op": "replace", "path": "/kind", "value": "Secret"}],
    "another kind that can be decoded": [
        {"op": "replace", "path": "/kind", "value": "Secret"},
        {"op": "remove", "path": "/data"},
    ],
    "another version": [{"op": "replace", "path": "/apiVersion", "value": "v2"}],
    "a label that is not valid": [add("/metadata/labels/x", "a b")],
    "the whole object": [{"op": "replace", "path": "", "value": {"data": {"z": "1"}}}],
    "no list": "e30=",
    "no JSON": "eA==",
    "no base64": "%",
    "nothing to do": [],
}
_REVIEW = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
#: Answers of webhooks that are not as they should be, or unusual.
ANSWERS: dict[str, Any] = {
    "no response": {"none": True},
    "another kind": {"head": {"kind": "Other"}},
    "another version": {"head": {"apiVersion": "admission.k8s.io/v1beta1"}},
    "an unknown version": {"head": {"apiVersion": "admission.k8s.io/v2"}},
    "no version": {"head": {"apiVersion": None}},
    "another uid": {"uid": "x"},
    "no uid": {"uid": None},
    "allowed is a text": {"allowed": "yes"},
    "allowed is missing": {"allowed": None},
    "not JSON": {"http": 200, "text": "hello"},
    "an empty body": {"http": 200},
    "an empty object": {"http": 200, "text": "{}"},
    "a list": {"http": 200, "text": "[]"},
    "not found": {"http": 404, "text": "404 page not found"},
    "a failure with text": {"http": 500, "text": "oh"},
    "a failure with JSON": {"http": 500, "text": '{"oh": 1}', "media": "application/json"},
    "a Status": {
        "http": 403,
        "text": '{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "mine", "code": 403}',
        "media": "application/json",
    },
    "forbidden": {"http": 403, "text": "no"},
    "unauthorized": {"http": 401, "text": "no"},
    "bad request": {"http": 400, "text": "no"},
    "too many": {"http": 429, "text": "no"},
    "unavailable": {"http": 503, "text": "no"},
    "gateway": {"http": 504, "text": "no"},
    "a conflict": {"http": 409, "text": "no"},
    "unprocessable": {"http": 422, "text": "no"},
    "a teapot": {"http": 418, "text": "no"},
    "a redirect": {"http": 302, "headers": {"Location": "/elsewhere"}},
    "no content": {"http": 204},
    "created": {"http": 201, "text": "x"},
}
_DETAILS = {"name": "n", "kind": "k", "causes": [{"field": "f", "message": "m", "reason": "r"}]}
#: Statuses of denials.
DENIALS: dict[str, Any] = {
    "details": {"message": "no", "details": _DETAILS},
    "a code above 599": {"message": "no", "code": 700},
    "a code below 400": {"message": "no", "code": 302},
    "a code alone": {"code": 409},
    "a reason alone": {"reason": "Forbidden"},
    "a reason that has a code": {"reason": "NotFound", "message": "no"},
    "an own reason": {"reason": "Mine", "message": "no", "code": 422},
    "status and metadata": {"message": "no", "status": "Success", "metadata": {"resourceVersion": "7"}},
    "a long message": {"message": "x" * 2000},
    "a message of lines": {"message": "a\nb\tc"},
    "seconds": {
        "message": "no",
        "code": 429,
        "reason": "TooManyRequests",
        "details": {"retryAfterSeconds": 7},
    },
}
WARNINGS: dict[str, Any] = {
    "two": ["one", "two"],
    "the same twice": ["one", "one"],
    "an empty one": ["", "x"],
    "a long one": ["y" * 300],
    "many long ones": [f"{at} " + "z" * 280 for at in range(20)],
    "signs": ['say "hi" \\ é', "a\nb\x07"],
}

CASES = [
    Case(
        "each operation",
        [
            create(query="?fieldManager=me", a="1"),
            ["PUT", "configmaps/one", a_map(a="2")],
            ["PATCH", "configmaps/one?fieldManager=me", {"data": {"a": "3"}}, MERGE],
            ["PATCH", "configmaps/one", [add("/data/b", "1")], JSON_PATCH],
            ["PATCH", "configmaps/one?fieldManager=me&force=true", a_map(a="4"), APPLY],
            ["PATCH", "configmaps/two?fieldManager=me", a_map("two", a="4"), APPLY],
            ["PATCH", "configmaps/one", {"data": {"a": "4"}}, MERGE],
            ["DELETE", "configmaps/one", {"gracePeriodSeconds": 3, "propagationPolicy": "Foreground"}],
            ["DELETE", "configmaps/two"],
        ],
        validating=[{}],
        also=("options", "resource", "requestResource", "requestKind", "object.data", "oldObject.data"),
    ),
    Case(
        "a collection is deleted",
        [["DELETE", "configmaps?labelSelector=app=web", {"gracePeriodSeconds": 0}]],
        validating=[{"rules": rules("configmaps", operations=["DELETE"])}],
        setup=[create("a"), create("b"), create("c")],
        also=("options", "object", "oldObject.metadata.name"),
    ),
    Case(
        "a collection may not be deleted",
        [["DELETE", "configmaps?labelSelector=app=web"], ["GET", "configmaps?labelSelector=app=web"]],
        mutating=[{"rules": rules("configmaps", operations=["DELETE"]), "answer": DENY}],
        setup=[create("a"), create("b")],
    ),
    Case(
        "a generated name",
        [["POST", "configmaps", {"metadata": {"generateName": "gen-"}}]],
        mutating=[{}],
        validating=[{}],
        also=("object.metadata.generateName",),
    ),
    Case(
        "dry run",
        [
            create(query="?dryRun=All", a="1"),
            ["GET", "configmaps/one"],
            create(a="1"),
            ["PATCH", "configmaps/one?dryRun=All", {"data": {"a": "2"}}, MERGE],
            ["DELETE", "configmaps/one?dryRun=All"],
            ["DELETE", "configmaps/one", {"dryRun": ["All"]}],
        ],
        mutating=[
            {
                "sideEffects": "NoneOnDryRun",
                "answer": noting("m"),
                "rules": rules("configmaps", operations=["CREATE", "UPDATE"]),
            }
        ],
        validating=[{"sideEffects": "NoneOnDryRun"}],
    ),
    Case(
        "webhooks in their order",
        [create(a="1")],
        mutating=[[{"answer": noting("first")}, {"answer": noting("second")}], [{"answer": noting("third")}]],
        validating=[{}, {}],
        also=("object.data",),
    ),
    Case(
        "an earlier one is asked again",
        [create(a="1")],
        mutating=[
            {"answer": noting("first"), "reinvocationPolicy": "IfNeeded"},
            {"answer": noting("second"), "reinvocationPolicy": "IfNeeded"},
            {"answer": {}, "reinvocationPolicy": "IfNeeded"},
            {"answer": noting("fourth")},
        ],
        also=("object.data",),
    ),
    Case(
        "what is asked again may change more, and nothing a third time",
        [create(a="1")],
        mutating=[
            {
                "answer": {
                    "patch": [add("/data/x", "1"), {"op": "copy", "from": "/data/a", "path": "/data/a1"}]
                },
                "reinvocationPolicy": "IfNeeded",
            },
            {
                "answer": {"patch": [{"op": "replace", "path": "/data/x", "value": "2"}]},
                "reinvocationPolicy": "IfNeeded",
            },
        ],
        also=("object.data",),
    ),
    Case(
        "one that ignores a failure lets the next be asked",
        [create(a="1")],
        mutating=[{"answer": {"http": 500}, "failurePolicy": "Ignore"}, {"answer": noting("second")}],
        validating=[{"answer": {"http": 500}, "failurePolicy": "Ignore"}, {}],
    ),
    Case(
        "one that fails ends it",
        [create(a="1")],
        mutating=[{"answer": noting("first")}, {"answer": {"http": 500}}, {"answer": noting("third")}],
        validating=[{}],
    ),
    Case(
        "a timeout",
        [create(a="1")],
        mutating=[
            {"answer": {"sleep": 3}, "timeoutSeconds": 1, "failurePolicy": "Ignore"},
            {"answer": noting("second")},
        ],
        validating=[{"answer": {"sleep": 3}, "timeoutSeconds": 1}],
    ),
    Case(
        "two denials",
        [create(a="1")],
        validating=[
            {"answer": {**DENY, "status": {"message": "first"}}},
            {"answer": {**DENY, "status": {"message": "second"}, "sleep": 1}},
        ],
    ),
    Case(
        "a denial that ignores failures",
        [create(a="1")],
        validating=[{"answer": DENY, "failurePolicy": "Ignore"}],
    ),
    Case("a denial with a patch", [create(a="1")], mutating=[{"answer": {**DENY, **noting("x")}}]),
    Case(
        "a denial on dry run",
        [create(a="1", query="?dryRun=All")],
        validating=[{"answer": {**DENY, "warnings": ["w"]}}],
    ),
    *(
        Case(f"authorizer: {name}", [create(a="1")], validating=[{"matchConditions": condition(text)}])
        for name, text in AUTHORIZER.items()
    ),
    *(
        Case(
            f"match conditions: {' and '.join(texts)}, {policy}",
            [create(a="1")],
            validating=[{"matchConditions": condition(*texts), "failurePolicy": policy}],
            mutating=[{"matchConditions": condition(*texts), "failurePolicy": policy}],
        )
        for policy in ("Fail", "Ignore")
        for texts in (
            ["object.data.none == '1'"],
            ["object.data.none == '1'", "false"],
            ["false", "object.data.none == '1'"],
            ["object.data.none == '1'", "true", "object.data.b == '1'"],
            ["object.data.none == '1'", "object.data.none == '1'"],
            ["has(object.data.a) && object.data.a == '1'"],
            ["oldObject == null", "request.userInfo.username != ''", "request.dryRun == false"],
            ["object.metadata.name.startsWith('o')", "request.name == 'one'"],
            ["variables.x == 1"],
            ["namespaceObject.metadata.name == 'x'"],
            ["params == null"],
        )[:8]
    ),
    Case(
        "selectors of objects, old and new",
        [
            ["PATCH", "configmaps/one", {"metadata": {"labels": {"app": "db"}}}, MERGE],
            ["PATCH", "configmaps/one", {"data": {"a": "5"}}, MERGE],
            ["PATCH", "configmaps/one", {"metadata": {"labels": {"app": "web"}}}, MERGE],
            ["DELETE", "configmaps/one"],
        ],
        validating=[{"objectSelector": {"matchLabels": {"app": "web"}}}],
        setup=[create(a="1")],
    ),
    Case(
        "a selector of objects and a mutation that makes it match",
        [create(a="1")],
        mutating=[
            {
                "answer": {},
                "objectSelector": {"matchLabels": {"late": "yes"}},
                "reinvocationPolicy": "IfNeeded",
            },
            {"answer": {"patch": [add("/metadata/labels/late", "yes")]}},
        ],
        validating=[
            {"objectSelector": {"matchLabels": {"late": "yes"}}},
            {"objectSelector": {"matchExpressions": [{"key": "late", "operator": "DoesNotExist"}]}},
        ],
    ),
    Case(
        "a review of v1beta1",
        [create(a="1")],
        mutating=[
            {
                "admissionReviewVersions": ["v2", "v1beta1", "v1"],
                "answer": {"uid": "", "patch": [add("/data/b", "2")], "patchType": None},
            }
        ],
        also=("uid",),
    ),
    *(
        Case(
            f"a patch: {name}, {policy}",
            [create(a="1")],
            mutating=[{"answer": {"patch": patch, "patchType": "JSONPatch"}, "failurePolicy": policy}],
        )
        for name, patch in PATCHES.items()
        for policy in (
            ("Fail", "Ignore") if name in ("a missing path is removed", "no list", "no JSON") else ("Fail",)
        )
    ),
    *(
        Case(f"an answer: {name}", [create(a="1")], validating=[{"answer": answer}])
        for name, answer in ANSWERS.items()
    ),
    *(
        Case(f"a denial: {name}", [create(a="1")], validating=[{"answer": {**DENY, "status": status}}])
        for name, status in DENIALS.items()
    ),
    *(
        Case(f"warnings: {name}", [create(a="1")], validating=[{"answer": {"warnings": texts}}])
        for name, texts in WARNINGS.items()
    ),
    Case(
        "warnings of several, with those of the server",
        [["POST", "configmaps?fieldValidation=Warn", {**a_map(a="1"), "colour": "red"}]],
        mutating=[{"answer": {"warnings": ["m"]}}],
        validating=[{"answer": {"warnings": ["v"]}}],
    ),
    *(
        Case(
            f"rules for pods: {name}",
            [
                ["POST", "pods", a_pod()],
                ["PATCH", "pods/p/status", {"status": {"phase": "Pending", "message": "x"}}, MERGE],
                ["PATCH", "pods/p", {"metadata": {"labels": {"a": "b"}}}, MERGE],
                ["POST", "pods/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}}],
                ["POST", "pods/p/eviction", {"metadata": {"name": "p"}}],
                ["DELETE", "pods/p?gracePeriodSeconds=0"],
            ],
            validating=[{"rules": rules(*names)}],
            also=("kind",),
        )
        for name, names in (
            ("pods", ["pods"]),
            ("pods/*", ["pods/*"]),
            ("*", ["*"]),
            ("*/*", ["*/*"]),
            ("*/status", ["*/status"]),
            ("pods/eviction", ["pods/eviction"]),
        )
    ),
    Case(
        "other subresources",
        [
            ["POST", "/apis/apps/v1/namespaces/SPACE/deployments", a_deployment()],
            ["PATCH", "/apis/apps/v1/namespaces/SPACE/deployments/d/scale", {"spec": {"replicas": 1}}, MERGE],
            [
                "PATCH",
                "/apis/apps/v1/namespaces/SPACE/deployments/d/status",
                {"status": {"replicas": 1}},
                MERGE,
            ],
            ["POST", "serviceaccounts", {"metadata": {"name": "s"}}],
            ["POST", "serviceaccounts/s/token", {"spec": {"audiences": ["https://x.example"]}}],
            ["POST", "pods", a_pod()],
            [
                "PATCH",
                "pods/p/ephemeralcontainers",
                {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}},
                MERGE,
            ],
        ],
        validating=[
            {
                "rules": [
                    *rules("deployments/*", group="apps"),
                    *rules("serviceaccounts/*", "pods/ephemeralcontainers"),
                ]
            }
        ],
        also=(
            "kind",
            "resource",
            "requestKind",
            "object.kind",
            "object.spec.replicas",
            "oldObject.spec.replicas",
            "options",
        ),
    ),
    *(
        Case(
            f"connecting to a pod: {'denied' if answer else 'allowed'}",
            [
                ["POST", "pods/p/exec?command=ls&command=-l&container=c&stdout=true"],
                ["GET", "pods/p/exec?command=ls&stdout=true"],
                ["POST", "pods/p/attach?stdout=true"],
                ["POST", "pods/p/portforward?ports=80"],
                ["GET", "pods/p/proxy/x/y?z=1"],
                ["GET", "pods/p:8080/proxy/"],
                ["GET", "pods/none/exec?command=ls&stdout=true"],
                ["GET", "pods/p/log"],
            ][: None if answer else 3],
            validating=[{"rules": rules("pods/*", operations=["CONNECT"]), "answer": answer}],
            setup=[["POST", "pods", a_pod()]],
            also=("object", "oldObject", "options", "kind", "resource"),
        )
        for answer in ({**DENY, "status": {"message": "no", "code": 403, "reason": "Forbidden"}}, {})
    ),
    Case(
        "connecting is changed",
        [["POST", "pods/p/exec?command=ls&stdout=true"]],
        mutating=[
            {
                "rules": rules("pods/exec", operations=["CONNECT"]),
                "answer": {"patch": [{"op": "add", "path": "/stdin", "value": True}]},
            }
        ],
        validating=[{"rules": rules("pods/exec", operations=["CONNECT"]), "answer": DENY}],
        setup=[["POST", "pods", a_pod()]],
        also=("object",),
    ),
    Case(
        "selectors of namespaces and namespaces themselves",
        [
            ["POST", "/api/v1/namespaces", {"metadata": {"name": "SPACE-b", "labels": {"case": "SPACE"}}}],
            ["PATCH", "/api/v1/namespaces/SPACE-b", {"metadata": {"labels": {"case": None}}}, MERGE],
            ["PATCH", "/api/v1/namespaces/SPACE-b", {"metadata": {"labels": {"case": "SPACE"}}}, MERGE],
            ["DELETE", "/api/v1/namespaces/SPACE-b"],
        ],
        validating=[{"rules": rules("namespaces", "namespaces/*")}],
        also=("object.metadata.labels", "oldObject.metadata.labels"),
    ),
    Case(
        "a pod that is changed gets defaults and is checked",
        [
            ["POST", "pods", a_pod("a")],
            ["POST", "pods", a_pod("c")],
        ],
        mutating=[
            {
                "rules": rules("pods"),
                "objectSelector": {},
                "matchConditions": condition("object.metadata.name == 'a'"),
                "answer": {"patch": [add("/spec/containers/-", {"name": "side", "image": "side:1"})]},
            },
            {
                "rules": rules("pods"),
                "matchConditions": condition("object.metadata.name == 'c'"),
                "answer": {"patch": [add("/spec/containers/-", {"name": "c", "image": "side:1"})]},
            },
        ],
        validating=[{"rules": rules("pods")}],
        also=("object.spec.containers",),
    ),
    Case(
        "an update that changes nothing",
        [["PATCH", "configmaps/one", {"data": {"a": "1"}}, MERGE], ["PUT", "configmaps/one", a_map(a="1")]],
        mutating=[{}],
        validating=[{}],
        setup=[create(a="1")],
    ),
    Case(
        "an object that is not valid is not judged",
        [
            ["POST", "configmaps", a_map("Not_valid")],
            ["PATCH", "configmaps/none", {"data": {}}, MERGE],
            ["DELETE", "configmaps/none"],
            create("one"),
            create("one"),
        ],
        mutating=[{}],
        validating=[{}],
    ),
    Case(
        "a stale update and a stale deletion",
        [
            ["PUT", "configmaps/one", {**a_map(a="2"), "metadata": {"name": "one", "resourceVersion": "1"}}],
            ["DELETE", "configmaps/one", {"preconditions": {"resourceVersion": "1"}}],
            ["DELETE", "configmaps/one", {"preconditions": {"uid": "1"}}],
        ],
        mutating=[{}],
        validating=[{}],
        setup=[create(a="1")],
    ),
    Case(
        "reviews of rights are judged, too",
        [
            [
                "POST",
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                {"spec": {"user": "x", "nonResourceAttributes": {"path": "/", "verb": "get"}}},
            ],
            [
                "POST",
                "/apis/coordination.k8s.io/v1/namespaces/SPACE/leases",
                {"metadata": {"name": "l"}, "spec": {}},
            ],
        ],
        validating=[
            {
                "rules": [
                    *rules("subjectaccessreviews", group="authorization.k8s.io"),
                    *rules("leases", group="coordination.k8s.io"),
                ]
            }
        ],
    ),
]
