"""Role based access control as an API server judges it, for one user, from the objects that a cluster holds.

Source: Kubernetes 1.36, plugin/pkg/auth/authorizer/rbac and pkg/apis/rbac/v1/evaluation_helpers.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.speaker import Speaker

Obj = dict[str, Any]
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_COLLECTIONS = ("clusterroles", "roles", "clusterrolebindings", "rolebindings")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for; the resource has its subresource behind a slash."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Rights:
    """What a service account may do."""

    namespace: str
    account: str
    objects: tuple[Obj, ...]

    @classmethod
    async def read(cls, speaker: Speaker, namespace: str, account: str) -> Rights:
        """As the cluster's roles and bindings are now."""
        found: list[Obj] = []
        for collection in _COLLECTIONS:
            answer = (await speaker.request("GET", f"{_RBAC}/{collection}")).accepted()
            kind = answer["kind"].removesuffix("List")
            found += ({**each, "kind": kind} for each in answer["items"])
        return cls(namespace, account, tuple(found))

    def __call__(self, asked: Asked) -> bool:
        """Whether a request is allowed."""
        return any(_allows(rule, asked) for scope, rule in self.rules() if scope in {"", asked.namespace})

    def rules(self) -> Iterator[tuple[str, Obj]]:
        """Each rule that is bound to the account, with the namespace in which it holds, "" for all."""
        for binding in self.objects:
            if binding["kind"] not in {"RoleBinding", "ClusterRoleBinding"} or not self._is_bound(binding):
                continue
            scope = binding["metadata"].get("namespace", "")
            wanted = binding["roleRef"]
            for role in self.objects:
                within = role["metadata"].get("namespace", "")
                if (role["kind"], role["metadata"]["name"]) != (wanted["kind"], wanted["name"]):
                    continue
                if role["kind"] == "ClusterRole" or within == scope:
                    yield from ((scope, rule) for rule in role.get("rules") or ())

    def _is_bound(self, binding: Obj) -> bool:
        groups = {
            "system:serviceaccounts",
            f"system:serviceaccounts:{self.namespace}",
            "system:authenticated",
        }
        for subject in binding.get("subjects") or ():
            match subject["kind"]:
                case "ServiceAccount":
                    within = subject.get("namespace") or binding["metadata"].get("namespace")
                    if (subject["name"], within) == (self.account, self.namespace):
                        return True
                case "Group" if subject["name"] in groups:
                    return True
                case "User" if subject["name"] == f"system:serviceaccount:{self.namespace}:{self.account}":
                    return True
        return False


def _allows(rule: Obj, asked: Asked) -> bool:
    names = rule.get("resourceNames") or ()
    resources = rule.get("resources") or ()
    _, _, sub = asked.resource.partition("/")
    return (
        bool({"*", asked.verb} & set(rule["verbs"]))
        and bool({"*", asked.group} & set(rule.get("apiGroups") or ()))
        and (asked.resource in resources or "*" in resources or (bool(sub) and f"*/{sub}" in resources))
        and (not names or asked.name in names)
    )
