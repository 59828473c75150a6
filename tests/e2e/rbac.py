"""The rights of a service account by the objects of a cluster, judged as roadstead judges them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roadstead.authorization.rules import Asked, account_user, allows, grants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.speaker import Speaker

__all__ = ["Asked", "Rights"]

Obj = dict[str, Any]
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_COLLECTIONS = ("clusterroles", "roles", "clusterrolebindings", "rolebindings")


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
        return any(allows(rule, asked) for scope, rule in self.rules() if scope in {"", asked.namespace})

    def rules(self) -> Iterator[tuple[str, Obj]]:
        """Each rule that is bound to the account, with the namespace in which it holds, "" for all."""
        user = account_user(self.namespace, self.account)
        return ((each.namespace, each.rule) for each in grants(user, self.objects))
