"""The checks that judge policies in these tests: the classes in tree."""

from datetime import UTC, datetime

from plimsoll.inspection.catalogue import Catalogue, RebalancingJudge, SchedulingJudge
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.policies.judgement import PolicyChecks

_CATALOGUE = Catalogue()
PLUGINS = frozenset(_CATALOGUE.plugins)
CHECKS = PolicyChecks(
    SchedulingJudge(_CATALOGUE),
    RebalancingJudge(_CATALOGUE, ClusterObjects(), datetime(2026, 1, 1, tzinfo=UTC)),
)
