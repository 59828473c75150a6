"""The authorizer that end-to-end tests put before an API server."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.rbac import Asked, Rights

ACCOUNT = {"kind": "ServiceAccount", "name": "mover", "namespace": "tools"}


def objects(rule: dict[str, Any], *, namespaced: bool, subject: dict[str, str]) -> tuple[dict[str, Any], ...]:
    """A role with one rule, bound to one subject."""
    prefix, meta = ("", {"namespace": "tools"}) if namespaced else ("Cluster", {})
    role = {"kind": f"{prefix}Role", "metadata": {"name": "some", **meta}, "rules": [rule]}
    reference = {"kind": f"{prefix}Role", "name": "some"}
    binding = {"kind": f"{prefix}RoleBinding", "metadata": {"name": "bound", **meta}}
    return role, {**binding, "roleRef": reference, "subjects": [subject]}


READING = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}
NAMED = {"verbs": ["get", "create"], "apiGroups": ["a.io"], "resources": ["leases"], "resourceNames": ["one"]}
ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
SCALES = {"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["*/scale"]}


@pytest.mark.parametrize(
    ("rule", "namespaced", "asked", "allowed"),
    [
        pytest.param(READING, False, Asked("get", "", "pods", "any", "a"), True, id="cluster-wide"),
        pytest.param(READING, False, Asked("list", "", "pods"), True, id="all namespaces"),
        pytest.param(READING, False, Asked("watch", "", "pods", "any"), False, id="another verb"),
        pytest.param(READING, False, Asked("get", "apps", "pods", "any"), False, id="another group"),
        pytest.param(READING, False, Asked("get", "", "secrets", "any"), False, id="another resource"),
        pytest.param(READING, False, Asked("get", "", "pods/log", "any", "a"), True, id="subresource"),
        pytest.param(
            READING, False, Asked("get", "", "pods/exec", "any", "a"), False, id="another subresource"
        ),
        pytest.param(READING, True, Asked("get", "", "pods", "tools", "a"), True, id="its namespace"),
        pytest.param(READING, True, Asked("get", "", "pods", "other", "a"), False, id="another namespace"),
        pytest.param(READING, True, Asked("list", "", "pods"), False, id="a role is not for all namespaces"),
        pytest.param(NAMED, True, Asked("get", "a.io", "leases", "tools", "one"), True, id="its name"),
        pytest.param(NAMED, True, Asked("get", "a.io", "leases", "tools", "two"), False, id="another name"),
        pytest.param(
            NAMED, True, Asked("create", "a.io", "leases", "tools"), False, id="what has no name yet"
        ),
        pytest.param(ALL, False, Asked("delete", "x.io", "things/parts", "any", "a"), True, id="everything"),
        pytest.param(
            SCALES, False, Asked("patch", "apps", "deployments/scale", "a", "b"), True, id="any scale"
        ),
        pytest.param(SCALES, False, Asked("patch", "apps", "scale", "a", "b"), False, id="no subresource"),
    ],
)
def test_a_rule_allows_what_it_names(
    rule: dict[str, Any], namespaced: bool, asked: Asked, allowed: bool
) -> None:
    """Verbs, groups, resources, names, and the binding's namespace."""
    rights = Rights("tools", "mover", objects(rule, namespaced=namespaced, subject=ACCOUNT))

    assert rights(asked) is allowed


@pytest.mark.parametrize(
    ("subject", "is_meant"),
    [
        ({"kind": "Group", "name": "system:serviceaccounts:tools"}, True),
        ({"kind": "Group", "name": "system:serviceaccounts:other"}, False),
        ({"kind": "User", "name": "system:serviceaccount:tools:mover"}, True),
        ({"kind": "User", "name": "mover"}, False),
        ({**ACCOUNT, "namespace": "other"}, False),
        ({**ACCOUNT, "name": "other"}, False),
    ],
)
def test_a_binding_names_whom_it_means(subject: dict[str, str], is_meant: bool) -> None:
    """The account itself, as a user, or one of its groups."""
    rights = Rights("tools", "mover", objects(ALL, namespaced=False, subject=subject))

    assert rights(Asked("get", "", "pods")) is is_meant
