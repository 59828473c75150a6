"""A cluster at rest has no pod that a move would bring to a place that the scheduler allows it."""

import pytest

from planning.rounds import NOW, PLACE, SAFE, UNLIMITED, a_policy
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.selectors import untolerated
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import PodSpec
from plimsoll.planning.moves import Goal, PlanningContext
from plimsoll.planning.planners import make_plan
from trials.missed_moves import missed
from trials.rounds import USUAL, rounds
from trials.starts import some_start

AROUND = PlanningContext(now=NOW)


@pytest.mark.parametrize("planner", [Planner.PROVEN, Planner.OPTIMAL])
@pytest.mark.parametrize("seed", range(902, 905))
def test_no_move_is_left_that_lowers_the_number_of_violated_rules(seed: int, planner: Planner) -> None:
    """By brute force over all pods and the nodes that the scheduler ranks best; nothing is protected."""
    policy = a_policy(
        *USUAL, limits=SAFE, evictor={"minReplicas": 0}, planner=planner, goal=Goal(seconds=0.2)
    )
    cluster = some_start(seed)

    story = rounds(cluster, policy, PLACE, AROUND, cycles=40, seed=seed)

    assert (story.rested, story.returned, story.again) == (True, [], [])
    assert missed(cluster, policy, AROUND) == []


def tainted(cluster: Cluster) -> dict[str, PodSpec]:
    """The pods on nodes with a taint that they do not tolerate, by uid."""
    return {
        pod.uid: pod.pod.spec
        for pod, row in cluster.placed()
        if untolerated(cluster.nodes[row].spec.taints, pod.pod.spec.tolerations, numeric=True)
    }


@pytest.mark.parametrize("seed", range(920, 930))
def test_one_run_without_limits_clears_tainted_nodes(seed: int) -> None:
    """Whatever other strategies complain of, but for pods that the scheduler would place nowhere else."""
    policy = a_policy(*USUAL, limits=UNLIMITED, evictor={"minReplicas": 0})
    cluster = some_start(seed)

    made = make_plan(policy, cluster, AROUND)

    left = tainted(cluster).keys() - {move.pod.uid for move in made.moves}
    refused: dict[str, str] = {
        each.pod.uid: each.refusal.reason for each in made.refused if each.pod.uid in left
    }
    assert {refused[uid] for uid in left} <= {"NoFeasibleNode", "NoOtherNode"}
