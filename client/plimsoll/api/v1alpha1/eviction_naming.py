"""Names and labels of Eviction records: made from the move alone, so a second attempt finds the first."""

from hashlib import sha256
from typing import Final

POLICY_LABEL: Final = "plimsoll.dev/policy"
STRATEGY_LABEL: Final = "plimsoll.dev/strategy"
FROM_NODE_LABEL: Final = "plimsoll.dev/from-node"
OWNER_KIND_LABEL: Final = "plimsoll.dev/owner-kind"
OWNER_NAME_LABEL: Final = "plimsoll.dev/owner-name"
BUNDLE_LABEL: Final = "plimsoll.dev/bundle"

MAX_NAME = 253
MAX_LABEL_VALUE = 63
_HASH = 8


def record_name(pod: str, uid: str, cycle: str) -> str:
    """Name of the record of one pod's move in one cycle: the pod's name and eight characters of a hash.

    Equal input gives an equal name, so a record that was written before a crash is not written twice.
    The cycle tells this run from the others of all policies.
    """
    return f"{_head(pod)}-{_digest(f'{uid}/{cycle}')}"


def is_name_for(record: str, pod: str) -> bool:
    """Whether a record about this pod may have this name, whatever the pod's uid and the cycle are."""
    return record.startswith(f"{_head(pod)}-")


def _head(pod: str) -> str:
    return pod[: MAX_NAME - _HASH - 1].rstrip("-.")


def label_value(text: str) -> str:
    """The text as a label value: itself where it is one, else cut and made unique with a hash.

    Names of nodes and policies may have 253 characters, those of third-party strategies a slash.
    """
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in text)
    if (
        plain == text
        and len(text) <= MAX_LABEL_VALUE
        and (not text or (text[0].isalnum() and text[-1].isalnum()))
    ):
        return text
    head = plain.lstrip("-_.")[: MAX_LABEL_VALUE - _HASH - 1].rstrip("-_.")
    return f"{head}-{_digest(text)}" if head else _digest(text)


def record_labels(
    *,
    policy: str,
    strategy: str,
    from_node: str,
    owner_kind: str = "",
    owner_name: str = "",
    bundle: str = "",
) -> dict[str, str]:
    """Labels that ``kubectl get evictions.plimsoll.dev -l`` selects by; an owner's only with an owner."""
    labels = {POLICY_LABEL: policy, STRATEGY_LABEL: strategy, FROM_NODE_LABEL: from_node}
    if owner_kind:
        labels |= {OWNER_KIND_LABEL: owner_kind, OWNER_NAME_LABEL: owner_name}
    if bundle:
        labels[BUNDLE_LABEL] = bundle
    return {key: label_value(value) for key, value in labels.items()}


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_HASH]
