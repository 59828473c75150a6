"""Structured logs: one line for each event, in JSON or text, of our code and of libraries.

Keys: ``pod``, ``node``, ``policy``, ``strategy``, ``plugin``, ``resource``, ``reason``; and ``decision``,
which is the same in all lines about one decision: for a placement the pod's uid, for a move the record's key.
"""

import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, TextIO

import structlog

from plimsoll.model.shortened import shortened
from plimsoll.ports.observer import Observer

LogFormat = Literal["json", "text"]

_ROOT = logging.getLogger()

SHOWN = 200
"""Characters of a problem with an object that are logged."""

REPEATED_AFTER_S = 60.0
"""Seconds until a line that repeats is logged again."""

REMEMBERED = 10_000
"""Problems with objects that are logged once; beyond that number the oldest may be logged again."""


def configure(log_format: LogFormat, level: str, cluster: str = "") -> logging.Handler:
    """Send all logging to standard error in one format; called once, at the start.

    ``cluster`` is the name of the cluster that each line has, "" for none.
    """

    def named(_: object, __: str, line: Any) -> Any:
        return {**line, "cluster": cluster} if cluster else line

    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        named,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    handler = LimitedHandler(time.monotonic)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.captureWarnings(True)  # noqa: FBT003 - the library's signature
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("kopf", "apscheduler", "aiohttp.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Our own error includes the problem of a kubeconfig or an exec plugin.
    logging.getLogger("kubernetes_asyncio").setLevel(logging.CRITICAL)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        cache_logger_on_first_use=True,
    )
    return handler


class Repeats:
    """Decides which of many equal lines are logged: the first, and then one a minute.

    Args:
        now_s: Returns monotonic seconds.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lines: dict[tuple[str, ...], tuple[float, int]] = {}

    def since_last(self, line: tuple[str, ...]) -> dict[str, int] | None:
        """What to add to the line: how many were left out since the last. None: leave this one out, too."""
        now = self._now_s()
        known = self._lines.pop(line, None)
        if known is not None and now - known[0] < REPEATED_AFTER_S:
            self._lines[line] = known[0], known[1] + 1
            return None
        if len(self._lines) >= REMEMBERED:
            del self._lines[next(iter(self._lines))]
        self._lines[line] = now, 0
        return {"left_out": known[1]} if known is not None and known[1] else {}


#: What differs between lines of a library that say the same: numbers and addresses of memory.
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes to standard error; of warnings and errors that repeat, from any code, one a minute.

    Our lines repeat if all their fields are equal; those of libraries also if they differ in numbers alone.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        super().__init__(sys.stderr)
        self._repeats = Repeats(now_s)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line unless it repeats."""
        if record.levelno >= logging.WARNING:
            more = self._repeats.since_last(_identity(record))
            if more is None:
                return
            if more and isinstance(record.msg, dict):
                record.msg = {**record.msg, **more}
            elif more:
                record.msg, record.args = f"{record.getMessage()} (left out: {more['left_out']})", None
        super().emit(record)


def _identity(record: logging.LogRecord) -> tuple[str, ...]:
    if isinstance(record.msg, dict):  # structlog's
        return tuple(f"{key}={value}" for key, value in record.msg.items() if key != "timestamp")
    error = repr(record.exc_info[1]) if record.exc_info else ""
    return record.name, record.levelname, _NUMBERS.sub("#", record.getMessage() + error)


class LoggingObserver(Observer):
    """Logs the steps of decisions.

    Placements are logged at debug level, because there are many; moves, and bindings that the API server
    rejected, always.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._log = structlog.get_logger("plimsoll")
        self._repeats = Repeats(now_s)
        self._skipped: dict[tuple[str, str, str], None] = {}

    def watch_listed(self, resource: str, objects: int) -> None:
        """Log a complete list."""
        self._log.debug("listed", resource=resource, objects=objects)

    def object_skipped(self, resource: str, name: str, problem: str) -> None:
        """Log an object that cannot be read, or only in part; once, however often it arrives."""
        shown = shortened(problem, SHOWN)
        key = (resource, name, shown)
        if key in self._skipped:
            return
        if len(self._skipped) >= REMEMBERED:
            del self._skipped[next(iter(self._skipped))]
        self._skipped[key] = None
        self._log.warning("object cannot be read", resource=resource, name=name, problem=shown)

    def plugin_failed(self, plugin: str, point: str, problem: str, trace: str = "") -> None:
        """Log a plugin's failure, and at debug where it raised; one a minute at an extension point."""
        more = self._repeats.since_last((plugin, point))
        if more is not None:
            self._log.error("plugin failed", plugin=plugin, point=point, problem=problem, **more)
            if trace:
                self._log.debug("plugin raised", plugin=plugin, point=point, trace=trace)

    def plugin_slow(self, plugin: str, point: str, seconds: float) -> None:
        """Log a slow plugin; of those at one extension point, one a minute."""
        more = self._repeats.since_last((plugin, point, "slow"))
        if more is not None:
            self._log.warning("plugin is slow", plugin=plugin, point=point, seconds=round(seconds, 3), **more)

    def placement_told(self, decision: str, step: str, facts: Mapping[str, object]) -> None:
        """Log a step of a placement."""
        if "verdict" in facts:
            self._log.warning(f"placement: {step}", decision=decision, **facts)
        elif _ROOT.isEnabledFor(logging.DEBUG):
            self._log.debug(f"placement: {step}", decision=decision, **facts)

    def move_told(self, decision: str, step: str, facts: Mapping[str, object]) -> None:
        """Log a step of a move."""
        self._log.info(f"move: {step}", decision=decision, **facts)

    def pod_refused(
        self, profile: str, reason: str, *, pod: str, node: str, decision: str, after_s: float | None
    ) -> None:
        """Log a kubelet's rejection of a pod."""
        self._log.warning(
            "pod not admitted",
            profile=profile,
            reason=reason,
            pod=pod,
            node=node,
            decision=decision,
            after_s=after_s,
        )

    def extender_asked(self, extender: str, point: str, result: str, seconds: float, problem: str) -> None:
        """Log an extender's failure; successful calls are not logged."""
        if result == "error":
            self._log.warning(
                "extender failed", extender=extender, point=point, seconds=round(seconds, 3), problem=problem
            )

    def run_ended(self, policy: str, considered: int, planned: int, refused: Mapping[str, int]) -> None:
        """Log the plan of a run."""
        self._log.info(
            "rebalancing planned",
            policy=policy,
            considered=considered,
            planned=planned,
            refused=dict(refused),
        )

    def records_exported(self, count: int, result: str, problem: str = "") -> None:
        """Log records that could not be exported; one line a minute."""
        more = None if result == "exported" else self._repeats.since_last(("audit log", result))
        if more is not None:
            self._log.error("records not exported", count=count, result=result, problem=problem, **more)

    def notice_ended(self, result: str, problem: str = "") -> None:
        """Log notices that were not delivered; one line a minute."""
        more = None if result == "sent" else self._repeats.since_last(("notices", result))
        if more is not None:
            self._log.warning("notice not delivered", result=result, problem=problem, **more)

    def record_dropped(self, policy: str, why: str) -> None:
        """Log a dropped record."""
        self._log.debug("record dropped", policy=policy, why=why)

    def leadership_changed(self, name: str, *, is_leading: bool) -> None:
        """Log whether this process leads."""
        self._log.info("leading" if is_leading else "standing by", lease=name)

    def leader_seen(self, name: str, holder: str) -> None:
        """Log the holder of a lease."""
        self._log.info("leader", lease=name, holder=holder or "none")

    def renewal_delayed(self, name: str, late_s: float, why: str) -> None:
        """Log a late renewal."""
        self._log.warning("lease renewed late", lease=name, late_s=round(late_s, 1), why=why)

    def failed(self, where: str, problem: str) -> None:
        """Log an internal error; of those at one place, one a minute."""
        if where == "election":  # the process ends by itself if the failure persists
            self._log.warning(
                "the lease cannot be read or written",
                problem=problem,
                remedy="deploy/base has its rights; --leader-elect-resource-namespace says where it is",
            )
        elif (more := self._repeats.since_last((where,))) is not None:
            self._log.error("contained failure", where=where, problem=problem, **more)
