"""Builds the observers of a process: its log, metrics and notices, its rights, and the plugins that fail."""

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from plimsoll.access.rights import Access
from plimsoll.app.settings import Settings
from plimsoll.kube.access_reviews import AccessReviews
from plimsoll.kube.cloud_events import CloudEventClient
from plimsoll.kube.session.session import Session
from plimsoll.plugins import IN_TREE
from plimsoll.policies.profiles import PluginFailures
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import told_to_all
from plimsoll.telemetry.logs import LoggingObserver
from plimsoll.telemetry.notices import Notices
from plimsoll.telemetry.outages import OutageLog
from plimsoll.telemetry.process import ProcessMetrics
from plimsoll.telemetry.rebalancing import RebalancingMetrics
from plimsoll.telemetry.scheduling import MetricsObserver
from plimsoll.timing.signal import Signal


class ProcessObservers:
    """All observers of the process, as one.

    Attributes:
        metrics: The registry that /metrics shows.
        access: The rights of the operator; an observer, because refused requests are reviewed again.
        failures: The plugins that raise.
        notices: Sends notices; None without an address.
        observer: Tells all of them.
    """

    def __init__(self, settings: Settings, clock: Clock, session: Session, conditions: Signal) -> None:
        self.metrics = CollectorRegistry()
        for collector in (GCCollector, PlatformCollector, ProcessCollector):
            collector(registry=self.metrics)
        log, counts = LoggingObserver(clock.monotonic), RebalancingMetrics(self.metrics)
        self.outages = OutageLog(clock.monotonic, session.address)
        self.access = Access(AccessReviews(session), clock, log)
        self.failures = PluginFailures(conditions, frozenset(each.name for each in IN_TREE), log)
        self.notices: Notices | None = None
        if settings.notify_url:
            post = CloudEventClient(settings.notify_url, settings.notify_token_file).post
            self.notices = Notices(
                post, settings.cluster_name, settings.notify_per_minute, clock, told_to_all([counts, log])
            )
        self._conditions = conditions
        self.observer = told_to_all(
            [
                MetricsObserver(self.metrics),
                counts,
                *([self.notices] if self.notices else []),
                ProcessMetrics(self.metrics),
                log,
                self.outages,
                self.failures,
                self.access,
            ]
        )

    def forgive(self, plugins: frozenset[str]) -> None:
        """Try failed plugins again, and renew the status of their policies."""
        self.failures.forgive(plugins)
        self._conditions.notify()
