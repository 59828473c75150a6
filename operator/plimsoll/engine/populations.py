"""How many pods there are at each level of the limits, for ceilings that are shares."""

from collections import Counter

from plimsoll.engine.limits import LimitLevel
from plimsoll.framework.strategy_context import StrategyContext


class Populations:
    """The placed pods of a cycle, counted when asked; namespaces as the cycle begins."""

    def __init__(self, context: StrategyContext) -> None:
        self._context = context
        self._namespaces: Counter[str] | None = None

    def __call__(self, level: LimitLevel, key: str) -> int:
        """The pods of all, a node, a namespace or an owner, whose key is ``namespace/uid``."""
        match level:
            case LimitLevel.TOTAL | LimitLevel.MINUTE | LimitLevel.BUDGET:
                return len(self._context.cluster.pods)
            case LimitLevel.NODE:
                return len(self._context.pods(key))
            case LimitLevel.NAMESPACE:
                if self._namespaces is None:  # a plan moves pods, it makes none
                    self._namespaces = Counter(pod.namespace for pod in self._context.cluster.pods.values())
                return self._namespaces[key]
            case LimitLevel.WORKLOAD:
                namespace, _, uid = key.partition("/")
                return self._context.replicas(namespace, uid)
