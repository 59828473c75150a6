"""Provides the rebalancing wing with its adapters to the API server."""

from plimsoll.api.v1alpha1.eviction import EvictionStatus
from plimsoll.api.v1alpha1.rebalancing_rule import RebalancingRuleStatus
from plimsoll.app.audit_file import AuditFile
from plimsoll.app.settings import Settings
from plimsoll.app.shared_parts import SharedParts
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.http_services.credentials import PrometheusCredentials
from plimsoll.http_services.prometheus import PrometheusClient
from plimsoll.kube.custom_resources import NamespacedResources, PolicyResources
from plimsoll.model.taints import UNHEALTHY
from plimsoll.policies.rebalancing import Registries
from plimsoll.policy_controller.status import RetriedStatuses
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.surges.rollouts import RolloutSurges
from plimsoll.rebalancing.wing import RebalancingPorts, RebalancingWing, Runtime
from plimsoll.strategies import EVICTORS
from plimsoll.writers.deployments import DeploymentRollouts, PodCosts
from plimsoll.writers.nodes import NodeTainter
from plimsoll.writers.pods import PodEvictor


def rebalancing_wing(
    parts: SharedParts,
    strategies: StrategyRegistry,
    statuses: RetriedStatuses,
    namespace: str,
    settings: Settings,
) -> RebalancingWing:
    """The wing with its adapters."""
    session, clock, observer = parts.session, parts.clock, parts.observer
    return RebalancingWing(
        parts.book,
        parts.groups,
        EvictionRecordStore(NamespacedResources(session, "evictions", EvictionStatus), clock, observer),
        Registries(strategies, EvictorRegistry(EVICTORS)),
        parts.access,
        RebalancingPorts(
            evictor=PodEvictor(session),
            closer=NodeTainter(session, clock),
            unhealthy=NodeTainter(session, clock, UNHEALTHY),
            costs=PodCosts(session),
            recorder=parts.recorder,
            statuses=statuses,
            maintenances=RetriedStatuses(PolicyResources(session, "nodemaintenances"), clock),
            rules=NamespacedResources(session, "rebalancingrules", RebalancingRuleStatus),
            feed=parts.load,
            prometheus=PrometheusClient(PrometheusCredentials(session, namespace), observer),
            surges=RolloutSurges(DeploymentRollouts(session), parts.book.cache.cluster.objects),
            audit=AuditFile(settings.audit_log) if settings.audit_log else None,
        ),
        Runtime(
            parts.timer,
            clock,
            parts.machine.computer,
            observer,
            parts.conditions,
            namespace,
            parts.machine.forks if parts.forks_plans else None,
            settings.cluster_name,
        ),
    )
