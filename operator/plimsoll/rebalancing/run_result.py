"""Results of rebalancing runs."""

from enum import StrEnum


class RunResult(StrEnum):
    """How a run ended; a value of a metric's label."""

    SUCCEEDED = "succeeded"  #: every strategy has judged the cluster
    FAILED = "failed"  #: some strategy could not judge the cluster; the others ran
    CRASHED = "crashed"  #: it ended with an error
    TIMED_OUT = "timed_out"  #: the plan was not ready in time
    SKIPPED = "skipped"  #: it was due and did not begin
