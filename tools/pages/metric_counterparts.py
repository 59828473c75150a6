"""Descheduler's metrics and ours: the table of docs/metrics.md.

Source: descheduler v0.36, ``metrics/metrics.go``.
"""

from dataclasses import dataclass

HEAD = """
## From descheduler

What to query instead of a metric of descheduler v0.36. Its `profile` is our `policy`. Namespaces and nodes
are in the Eviction records, not in labels.

| descheduler | Plimsoll | Differs |
| --- | --- | --- |
"""


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A metric of descheduler's and the one of ours that answers the same question.

    Attributes:
        theirs: Its name, "" where descheduler has none; with the label values that are meant, if not all.
        ours: The name without labels.
        selector: The labels that select the same in ours.
        differs: What is not the same.
    """

    theirs: str
    ours: str
    selector: str = ""
    differs: str = ""


_EVICTED = "descheduler_pods_evicted_total"

COUNTERPARTS = (
    Counterpart(
        f'{_EVICTED}{{result="success"}}',
        "plimsoll_rebalancer_records_total",
        '{phase="Evicted"}',
        'a dry run counts as `phase="Predicted"`, a surge as `phase="Surging"`',
    ),
    Counterpart(
        f'{_EVICTED}{{result="error"}}',
        "plimsoll_rebalancer_records_total",
        '{phase=~"Blocked|Failed"}',
        "`Blocked` is a PodDisruptionBudget; `Failed` also counts evictions whose replacement was not ready",
    ),
    Counterpart(
        f'{_EVICTED}{{result=~"maximum number of .*"}}',
        "plimsoll_rebalancer_refused_candidates_total",
        '{reason=~".*Limit"}',
        "other refusals are counted as well, each by its reason",
    ),
    Counterpart(
        "descheduler_loop_duration_seconds",
        "plimsoll_rebalancer_run_duration_seconds",
        differs="by policy, as each has its own schedule; the buckets are the same",
    ),
    Counterpart(
        "descheduler_strategy_duration_seconds",
        "plimsoll_rebalancer_strategy_duration_seconds",
        differs="includes the proofs of candidates, not the evictions; the buckets are the same",
    ),
    Counterpart(
        "descheduler_build_info", "plimsoll_build_info", differs="the value is 1, descheduler's is 0"
    ),
    Counterpart("", "plimsoll_rebalancer_candidates_total"),
    Counterpart("", "plimsoll_rebalancer_runs_total"),
    Counterpart("", "plimsoll_rebalancer_last_success_timestamp_seconds"),
    Counterpart("", "plimsoll_rebalancer_violations"),
    Counterpart("", "plimsoll_rebalancer_imbalance_percentage_points"),
)


def counterparts_table() -> str:
    """The section of the page, in Markdown."""
    return HEAD + "".join(
        f"| {_code(each.theirs)} | {_code(each.ours + each.selector)} | {each.differs} |\n"
        for each in COUNTERPARTS
    )


def _code(name: str) -> str:
    return "`" + name.replace("|", "\\|") + "`" if name else "none"
