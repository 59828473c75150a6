"""Rule for metrics: the help of a metric with labels ends with "Labeled by" and the names of its labels."""

import ast
import re
from collections.abc import Iterator

_METRICS = frozenset(
    (
        "Counter",
        "counter",
        "gauge",
        "histogram",
        "Gauge",
        "Histogram",
        "Summary",
        "CounterMetricFamily",
        "GaugeMetricFamily",
        "HistogramMetricFamily",
        "InfoMetricFamily",
    )
)


def metric_help_problems(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Metrics whose help does not name their labels: line, what it has to end with."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _METRICS):
            continue
        labels = _labels(node)
        if not labels or len(node.args) < len(("name", "help")):
            continue
        text = node.args[1]
        if (
            isinstance(text, ast.Constant)
            and isinstance(text.value, str)
            and not names_labels(text.value, labels)
        ):
            yield node.lineno, f"Labeled by {in_prose(labels)}."


def names_labels(text: str, labels: list[str]) -> bool:
    """Whether the last sentence names the labels in their order; their values may stand in brackets."""
    _, introduction, named = text.rpartition("Labeled by ")
    in_order = r"\b.*\b".join(re.escape(label) for label in labels)
    return bool(introduction) and text.endswith(".") and re.search(rf"\b{in_order}\b", named) is not None


def in_prose(labels: list[str]) -> str:
    """Labels as a list in a sentence: "result, profile and reason"."""
    return " and ".join(part for part in (", ".join(labels[:-1]), labels[-1]) if part)


def _labels(call: ast.Call) -> list[str]:
    given = [keyword.value for keyword in call.keywords if keyword.arg in ("labelnames", "labels")]
    listed = next((node for node in (*call.args[2:], *given) if isinstance(node, ast.List | ast.Tuple)), None)
    if listed is None:
        return []
    return [
        item.value for item in listed.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)
    ]
