"""Writes the manifest that grants exactly the missing rights: roles and bindings as a List."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from plimsoll.preflight.rights import Account, ReviewedRight

RBAC = "rbac.authorization.k8s.io"

#: The name of the roles and bindings; with the account's, where several accounts lack rights.
NAME = "plimsoll-missing"

Document = dict[str, Any]


def granting(missing: Iterable[tuple[Account, Iterable[ReviewedRight]]]) -> Document | None:
    """A List for ``kubectl apply``, of what accounts lack; None if no right is missing."""
    lacking = [(account, rights) for account, each in missing if (rights := list(dict.fromkeys(each)))]
    items: list[Document] = []
    for account, rights in lacking:
        name = NAME if len(lacking) == 1 else f"{NAME}-{account.namespace}-{account.name}"
        items += _granted(account, rights, name)
    return {"apiVersion": "v1", "kind": "List", "items": items} if items else None


def _granted(account: Account, missing: Iterable[ReviewedRight], name: str) -> Iterator[Document]:
    by_namespace: dict[str, list[ReviewedRight]] = {}
    for one in missing:
        by_namespace.setdefault(one.namespace, []).append(one)
    for namespace, asked in sorted(by_namespace.items()):
        where = {"namespace": namespace} if namespace else {}
        kind = "Role" if namespace else "ClusterRole"
        metadata = {"name": name, **where}
        version = f"{RBAC}/v1"
        yield {"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules(asked)}
        yield {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [_subject(account)],
        }


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
