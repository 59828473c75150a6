"""The hash that names what a pod template makes: a ReplicaSet, a ControllerRevision.

The spelling is upstream's (FNV-1a of 32 bits, in letters that make no words); the number is not, for
upstream hashes a Go value as Go prints it. Nobody may compute such a hash, only compare labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

POD_TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Obj, collisions: int = 0) -> str:
    """A short hash of a pod template.

    Args:
        template: the template.
        collisions: how often a hash of this owner was found to be taken by another template.
    """
    number = 0x811C9DC5
    for byte in orjson.dumps([template, collisions], option=orjson.OPT_SORT_KEYS):
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    return "".join(_ALPHABET[int(digit) % len(_ALPHABET)] for digit in str(number))
