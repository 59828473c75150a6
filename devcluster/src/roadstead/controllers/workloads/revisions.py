"""Maintains ControllerRevisions: the numbered templates of StatefulSets and DaemonSets.

Source: kubernetes v1.36 ``pkg/controller/history/controller_history.go``. The hash of a template has
upstream's form (FNV-1a of 32 bits, in letters that make no words) and another value, because upstream hashes
a Go value as Go prints it. Clients compare labels and compute no such hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from roadstead.values.copies import copied

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.controllers.ownership import Owners
    from roadstead.values.resources import Obj

RESOURCE = "controllerrevisions.apps"
HASH = "controller.kubernetes.io/hash"
POD_TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Obj, collisions: int = 0) -> str:
    """A short hash of a pod template.

    Args:
        template: the template.
        collisions: the number of times another template had the hash.
    """
    number = 0x811C9DC5
    for byte in orjson.dumps([template, collisions], option=orjson.OPT_SORT_KEYS):
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    return "".join(_ALPHABET[int(digit) % len(_ALPHABET)] for digit in str(number))


def template_of(revision: Obj) -> Obj:
    """The pod template of a revision."""
    template = dict(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return template


def hash_of(revision: Obj) -> str:
    """The hash in a revision's name."""
    digest: str = revision["metadata"]["labels"][HASH]
    return digest


def synced(context: Context, owners: Owners, owner: Obj) -> list[Obj]:
    """The owner's revisions, oldest first; the last is that of its current template."""
    revisions = sorted(context.ownership.dependents(RESOURCE, owner), key=lambda one: int(one["revision"]))
    template = owner["spec"]["template"]
    highest = int(revisions[-1]["revision"]) if revisions else 0
    same = next((one for one in reversed(revisions) if template_of(one) == template), None)
    if same is not None:
        others = [one for one in revisions if one is not same]
        if others and int(same["revision"]) < highest:
            same = context.api.update(RESOURCE, {**same, "revision": highest + 1})
        return [*others, same]
    digest = template_hash(template)
    labels = dict((template.get("metadata") or {}).get("labels") or {})
    data = {"spec": {"template": {**copied(template), "$patch": "replace"}}}
    created = context.api.create(
        RESOURCE,
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{owner['metadata']['name']}-{digest}",
                "namespace": owner["metadata"]["namespace"],
                "labels": {**labels, HASH: digest},
                "ownerReferences": [owners.reference_to(owner)],
            },
            "data": data,
            "revision": highest + 1,
        },
    )
    return [*revisions, created]


def forget_old(context: Context, owner: Obj, revisions: list[Obj], live: set[str]) -> None:
    """Delete the oldest unused revisions beyond the history limit.

    Args:
        context: the context of the controller.
        owner: has ``revisionHistoryLimit``.
        revisions: oldest first.
        live: the names of the revisions in use.
    """
    unused = [one for one in revisions if one["metadata"]["name"] not in live]
    limit = owner["spec"].get("revisionHistoryLimit", 10)
    for one in unused[: max(0, len(unused) - limit)]:
        context.api.delete(RESOURCE, one["metadata"]["namespace"], one["metadata"]["name"])
