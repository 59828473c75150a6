"""Node affinity, selectors of pods and tolerations, evaluated as the API documents them."""

from __future__ import annotations

from collections.abc import Mapping

from promises.commits import Obj
from promises.selectors import selects

Labels = Mapping[str, str]


def selects_pod(term: Obj, pod: Obj) -> bool:
    """Whether the selector of a term of affinity or spreading matches; without one, it never does."""
    selector = term.get("labelSelector")
    return selector is not None and selects(selector, pod["metadata"].get("labels"))


def reaches(required: Obj | None, node: Obj) -> bool:
    """Whether a required node affinity matches: one of its terms, all of that term; an empty term never."""
    if required is None:
        return True
    labels, name = node["metadata"].get("labels") or {}, node["metadata"]["name"]
    for term in required.get("nodeSelectorTerms") or ():
        expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
        if (expressions or fields) and (
            all(_holds(each, labels) for each in expressions)
            and all(_holds(each, {"metadata.name": name}) for each in fields)
        ):
            return True
    return False


def tolerates(pod: Obj, node: Obj) -> bool:
    """Whether every taint that keeps pods away is tolerated."""
    return all(
        any(is_tolerated(taint, each) for each in pod["spec"].get("tolerations") or ())
        for taint in node["spec"].get("taints") or ()
        if taint["effect"] in ("NoSchedule", "NoExecute")
    )


def is_tolerated(taint: Obj, toleration: Obj) -> bool:
    """Whether one toleration admits one taint, of a node or of a device."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")


def _holds(expression: Obj, labels: Labels) -> bool:
    """One requirement; values that are no numbers are neither greater nor less."""
    value, values = labels.get(expression["key"]), expression.get("values") or []
    operator = expression["operator"]
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    try:
        difference = int(value or "") - int(values[0])
    except ValueError:
        return False
    return difference > 0 if operator == "Gt" else difference < 0
