"""Writes the manifest that grants exactly the missing rights: roles and bindings as a List."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plimsoll.preflight.rights import Account, ReviewedRight

RBAC = "rbac.authorization.k8s.io"

#: The name of the roles and bindings.
NAME = "plimsoll-missing"

Document = dict[str, Any]


def granting(account: Account, missing: Iterable[ReviewedRight]) -> Document | None:
    """A List for ``kubectl apply``; None if no right is missing."""
    by_namespace: dict[str, list[ReviewedRight]] = {}
    for one in dict.fromkeys(missing):
        by_namespace.setdefault(one.namespace, []).append(one)
    items: list[Document] = []
    for namespace, asked in sorted(by_namespace.items()):
        where = {"namespace": namespace} if namespace else {}
        kind = "Role" if namespace else "ClusterRole"
        metadata = {"name": NAME, **where}
        version = f"{RBAC}/v1"
        items += (
            {"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules(asked)},
            {
                "apiVersion": version,
                "kind": f"{kind}Binding",
                "metadata": metadata,
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": NAME},
                "subjects": [_subject(account)],
            },
        )
    return {"apiVersion": "v1", "kind": "List", "items": items} if items else None


def rules(asked: Sequence[ReviewedRight]) -> list[Document]:
    """The rules of a role; resources with the same verbs share a rule."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for right, _, name in asked:
        verbs.setdefault((right.group, right.resource, name), []).append(right.verb)
    resources: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for (group, resource, name), found in sorted(verbs.items()):
        resources.setdefault((group, tuple(sorted(set(found))), name), []).append(resource)
    return [
        {
            "apiGroups": [group],
            "resources": names,
            **({"resourceNames": [name]} if name else {}),
            "verbs": list(found),
        }
        for (group, found, name), names in resources.items()
    ]


def _subject(account: Account) -> Mapping[str, str]:
    if account.namespace:
        return {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
    return {"apiGroup": RBAC, "kind": "User", "name": account.user}
