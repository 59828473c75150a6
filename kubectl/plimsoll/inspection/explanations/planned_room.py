"""Plans moves that make room for a pending pod, by the policies' strategies that do so."""

from plimsoll.framework import PluginError, PodInfo
from plimsoll.inspection.explanations.suggestions import Help
from plimsoll.inspection.state import ClusterState
from plimsoll.planning.planners import make_plan
from plimsoll.strategies.make_room_for_pending import MakeRoomForPending


def planned_rooms(state: ClusterState, pod: PodInfo) -> list[Help]:
    """The moves for the pod in the next run of each policy with such a strategy."""
    found = []
    for name, policy in state.working.items():
        spec = policy.spec.rebalancing
        if spec is None or all(each.name != MakeRoomForPending.name for each in spec.strategies):
            continue
        try:
            plan = make_plan(*state.run_input(name))
        except PluginError:
            continue
        moves = [
            each
            for each in plan.moves
            if each.beneficiary is not None and any(one.pod.uid == pod.uid for one in each.beneficiary.all)
        ]
        if moves:
            said = ", ".join(f"{each.pod.key} to {each.target}" for each in moves)
            text = f"policy {name} ({spec.mode.value}), whose {moves[0].strategy} moves {said}"
            node = next(
                one.node
                for each in moves
                if each.beneficiary is not None
                for one in each.beneficiary.all
                if one.pod.uid == pod.uid
            )
            found.append(Help(kind="Plan", text=text, node=node))
    return found
