"""The constraints of a pod that strategies look at."""

from plimsoll.testing.builders import a_pod, the_info
from plimsoll.toolkit.descheduling.spread_populations import spread_constraints_of


def test_a_constraint_whose_selector_is_invalid_hides_no_other() -> None:
    """The API refuses such a selector; whatever was stored before, the others count."""
    wrong = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]}
    constraints = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}
        for key, when, selector in (
            ("zone", "DoNotSchedule", wrong),
            ("rack", "ScheduleAnyway", {"matchLabels": {"app": "web"}}),
            ("host", "DoNotSchedule", {"matchLabels": {"app": "web"}}),
        )
    ]
    pod = the_info(a_pod(topologySpreadConstraints=constraints))

    assert [each.topology_key for each in spread_constraints_of(pod, ("DoNotSchedule",))] == ["host"]
    both = spread_constraints_of(pod, ("DoNotSchedule", "ScheduleAnyway"))
    assert [each.topology_key for each in both] == ["rack", "host"]
