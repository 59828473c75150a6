"""OfflineCluster waits, places and preempts as a page of plain code does."""

from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from plimsoll.engine.profile import MULTI_POINT, Enabled, PluginSet, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.owned_group import NOT_YET
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import GROUP_LABEL, PodGroup
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.offline.cluster import GATED, OfflineCluster, OfflinePlacement, Schedulers
from plimsoll.planning.forecasts import Forecasts
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

REGISTRY = Registry(IN_TREE)
ENABLED = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name in REGISTRY]
SERVED = build_profile(ProfileConfig("default-scheduler", policy="ours"), REGISTRY, ENABLED)
ASSUMED = build_profile(ProfileConfig("another"), REGISTRY, ENABLED)
ZONE = "topology.kubernetes.io/zone"
#: Each node with its cores and its zone.
NODES = {"n0": (4, "a"), "n1": (3, "a"), "n2": (3, "b"), "n3": (2, "b")}
#: By group, the members that it needs and the label that they share.
GROUPS = {"pair": (2, ""), "trio": (3, ""), "zoned": (2, ZONE)}
#: The priority of members of groups, which are no victims here.
HIGHEST = 20
KINDS = ("plain", "plain", "apart", "near", "gated", "leaving", "other", "pair", "trio", "zoned", "unknown")
#: A pod by the number of its name, its cores, priority, kind and the seconds of its creation.
SPECS = st.tuples(
    st.integers(0, 9), st.integers(1, 3), st.sampled_from([0, 10]), st.sampled_from(KINDS), st.integers(0, 3)
)
START = 1_800_000_000.0


def terms(app: str) -> Any:
    """What an affinity to pods of an application, on the same node, requires."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


#: Of pods that stay apart from one another, and of pods that need a plain one on their node.
AFFINITY = {"apart": {"podAntiAffinity": terms("apart")}, "near": {"podAffinity": terms("plain")}}


def group(name: str) -> PodGroup:
    least, key = GROUPS[name]
    spec = {"minMember": least, "topology": {"required": key}}
    return convert(PodGroup, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def group_of(pod: Pod) -> str:
    return pod.metadata.labels.get(GROUP_LABEL, "")


def cores(pod: PodInfo) -> int:
    return int(pod.requests["cpu"]) // 1000


def is_of(app: str, pod: PodInfo) -> bool:
    return pod.pod.metadata.labels.get("app") == app


is_apart, is_near, is_plain = (partial(is_of, app) for app in ("apart", "near", "plain"))


class Offline(RuleBasedStateMachine):
    """Pods come, leave, end, come again under their names, and are tried while time passes or stands."""

    @initialize(preempting=st.booleans(), stands=st.booleans(), moving=st.booleans(), fills=st.booleans())
    def begin(self, preempting: bool, stands: bool, moving: bool, fills: bool) -> None:
        nodes = [
            a_node(name, cpu=cpu, memory="64Gi", labels={ZONE: zone}) for name, (cpu, zone) in NODES.items()
        ]
        fork = a_cluster(nodes)
        self.left: list[str] = []
        self.chosen: set[str] = set()
        self.preempting, self.now = preempting, None if stands else START
        moved = [(fork.templates.info(a_pod("moved", cpu="1")), "n0")] if moving else []
        self.world = OfflineCluster(
            fork,
            Schedulers(
                {"default-scheduler": SERVED},
                Forecasts(default=ASSUMED),
                {f"default/{each}": group(each) for each in GROUPS},
            ),
            moved,
            preempting=preempting,
            now=self.now,
            ties=self.ties,
            left=lambda pod: self.left.append(pod.uid),
        )
        self.number = 0
        self.pods: dict[str, PodInfo] = {}  #: all that came and have not left, as they came
        self.placed: dict[str, str] = {}
        self.ended: set[str] = set()
        self.arrivals: dict[str, tuple[float, int]] = {}
        if fills:
            self.some_come([(number, 1, 0, "plain", 0) for number in range(10, 22)])
            self.they_are_tried()

    def ties(self, name: str) -> Any:
        self.chosen.add(name)
        return lambda best: best - 1

    # -- what happens --------------------------------------------------------------------------------

    @rule(pods=st.lists(SPECS, min_size=1, max_size=6))
    def some_come(self, pods: list[tuple[int, int, int, str, int]]) -> None:
        for each in pods:
            self.a_pod_comes(*each)

    def a_pod_comes(self, name: int, cpu: int, priority: int, kind: str, age: int) -> None:
        known = f"uid-default-p{name}"
        if known in self.pods:
            self.a_pod_leaves(known)
        in_group = kind in GROUPS
        metadata: dict[str, Any] = {"creationTimestamp": f"2026-01-01T00:00:0{age}Z"}
        if kind == "leaving":
            metadata["deletionTimestamp"] = "2026-01-01T00:01:00Z"
        pod = a_pod(
            f"p{name}",
            cpu=1 if in_group else cpu,
            priority=HIGHEST if in_group else priority,
            labels={GROUP_LABEL: kind} if in_group or kind == "unknown" else {"app": kind},
            affinity=AFFINITY.get(kind),
            metadata=metadata,
            schedulerName="another" if kind == "other" else "default-scheduler",
            schedulingGates=[{"name": "wait"}] if kind == "gated" else [],
        )
        info = self.world.fork.templates.info(pod)
        self.number += 1
        created = pod.metadata.creation_timestamp
        assert created is not None
        self.arrivals[info.uid] = (created.timestamp() if self.now is None else self.now, self.number)
        self.pods[info.uid] = info
        self.world.add(info)

    @rule(name=st.integers(0, 9), cpu=st.integers(1, 3), kind=st.sampled_from(("plain", "near")))
    def a_higher_one_comes(self, name: int, cpu: int, kind: str) -> None:
        """And is tried: it may be nominated where victims leave, or have a place once the lower one has."""
        self.a_pod_comes(name, cpu, 10, kind, 0)
        self.a_pod_comes(10, 1, 0, "plain", 0)
        self.they_are_tried()

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def one_leaves(self, data: Any) -> None:
        self.a_pod_leaves(data.draw(st.sampled_from(sorted(self.pods))))

    def a_pod_leaves(self, uid: str) -> None:
        was = self.world.remove(uid)
        assert was is not None
        assert was.uid == uid
        assert self.world.remove(uid) is None
        del self.pods[uid]
        self.placed.pop(uid, None)
        self.ended.discard(uid)

    @precondition(lambda self: self.placed)
    @rule(data=st.data(), phase=st.sampled_from(["Succeeded", "Failed"]))
    def one_ends(self, data: Any, phase: str) -> None:
        uid = data.draw(st.sampled_from(sorted(self.placed)))
        was = self.pods[uid].pod
        self.world.remove(uid)
        status = replace_phase(was, phase)
        self.pods[uid] = self.world.ended[uid] = self.world.fork.templates.info(status)
        del self.placed[uid]
        self.ended.add(uid)

    @rule(seconds=st.integers(0, 30))
    def time_passes(self, seconds: int) -> None:
        if self.now is not None:
            self.now = self.world.now = self.now + seconds

    @rule(cpu=st.integers(1, 4), priority=st.sampled_from((0, HIGHEST)))
    def one_is_placed_that_never_waited(self, cpu: int, priority: int) -> None:
        self.number += 1
        info = self.world.fork.templates.info(a_pod(f"extra{self.number}", cpu=cpu, priority=priority))
        if self.now is not None:
            return  # only commands ask so, and their time stands still
        self.left.clear()
        before = self.rooms(info)
        made = self.rooms(info, priority) if self.preempting and not before else []
        found = self.world.place(info)
        assert isinstance(found, OfflinePlacement) == bool(before or made)
        if isinstance(found, OfflinePlacement):
            assert found.node in before or found.node in made
            assert bool(self.left) == bool(made)
            for uid in self.left:
                assert self.pods[uid].priority < priority
                assert self.placed.pop(uid) == found.node
                del self.pods[uid]
            self.pods[info.uid], self.placed[info.uid] = info, found.node

    @rule()
    def they_are_tried(self) -> None:
        self.left.clear()
        there = {*self.placed}
        placements = self.world.settle()
        uids = [each.pod.uid for each in placements]
        for each in placements:
            uid = each.pod.uid
            for victim in each.victims:
                assert victim.priority < self.pods[uid].priority
            assert each.waited == (0.0 if self.now is None else self.now - self.arrivals[uid][0])
            if self.now is not None:
                assert each.pod.pod.spec.node_name == each.node
                assert each.pod.pod.is_ready
                started = each.pod.pod.status.start_time
                assert started is not None
                assert started.timestamp() == self.now
            self.placed[uid] = each.node
        victims = sorted(one.uid for each in placements for one in each.victims)
        assert sorted(self.left) == victims
        assert bool(victims) <= self.preempting
        assert set(victims) <= there | set(uids)
        for uid in victims:
            del self.placed[uid], self.pods[uid]
        assert self.placed == {uid: node for node in NODES for uid in self.on(node)}
        self.no_pod_waits_that_could_run()

    # -- what must be so -----------------------------------------------------------------------------

    def no_pod_waits_that_could_run(self) -> None:
        for uid, pod in self.world.waiting.items():
            name = group_of(pod.pod)
            message = self.world.refusals[uid].message
            assert message
            if pod.pod.spec.scheduling_gates:
                assert message == GATED
            elif pod.is_terminating:
                assert message == "the pod is terminating"
            elif name and name not in GROUPS:
                assert (
                    message == f"waiting for PodGroup default/{name}: there is no such podgroups.plimsoll.dev"
                )
            elif not name:
                assert not self.rooms(pod), message
                assert not self.preempting or not self.rooms(pod, pod.priority), message
        for name, (least, key) in GROUPS.items():
            waiting = sum(group_of(pod.pod) == name for pod in self.world.waiting.values())
            if waiting:
                needed = max(1, least - len(self.standing(name)))
                assert min(waiting, self.group_room(name, key, self.preempting)) < needed

    def rooms(self, pod: PodInfo, above: int | None = None) -> list[str]:
        """The nodes that have room for a pod, all of a lower priority than ``above`` being away."""
        found = []
        for node, (capacity, _) in NODES.items():
            there = [self.pods[uid] for uid, its in self.placed.items() if its == node]
            there = [each for each in there if above is None or each.priority >= above]
            is_near_one = not is_near(pod) or any(map(is_plain, there))
            there += [
                each
                for each, its in self.world.nominator.entries()
                if its == node and each.uid != pod.uid and each.priority >= pod.priority
            ]
            is_alone = not (is_apart(pod) and any(map(is_apart, there)))
            if sum(map(cores, there)) + cores(pod) <= capacity and is_alone and is_near_one:
                found.append(node)
        return found

    def standing(self, name: str) -> list[str]:
        """The members of a group that run or have succeeded."""
        return [
            uid
            for uid, pod in self.pods.items()
            if group_of(pod.pod) == name
            and (uid in self.placed or (uid in self.ended and pod.pod.status.phase == "Succeeded"))
        ]

    def group_room(self, name: str, key: str, is_preempting: bool) -> int:
        """How many members have room together, in the best zone if they share one."""
        free = {}
        for node, (capacity, _) in NODES.items():
            there = [self.pods[uid] for uid, its in self.placed.items() if its == node]
            there = [each for each in there if not is_preempting or each.priority >= HIGHEST]
            there += [
                each
                for each, its in self.world.nominator.entries()
                if its == node and each.priority >= HIGHEST
            ]
            free[node] = capacity - sum(map(cores, there))
        if not key:
            return sum(free.values())
        taken = {NODES[self.placed[uid]][1] for uid in self.standing(name) if uid in self.placed}
        zones = taken or {zone for _, zone in NODES.values()}
        return max(sum(free[node] for node, (_, its) in NODES.items() if its == zone) for zone in zones)

    def on(self, node: str) -> list[str]:
        """The pods that the fork has on a node."""
        return [pod.uid for pod in self.world.fork.pods_on(self.world.fork.rows[node])]

    @invariant()
    def no_node_is_over_committed(self) -> None:
        for node, (capacity, _) in NODES.items():
            there = [self.world.fork.pods[uid] for uid in self.on(node)]
            assert sum(map(cores, there)) <= capacity
            assert sum(map(is_apart, there)) <= 1

    @invariant()
    def those_without_a_place_are_known_in_their_order(self) -> None:
        waiting = [uid for uid in self.pods if uid not in self.placed and uid not in self.ended]
        assert [*self.world.waiting] == sorted(waiting, key=lambda uid: self.arrivals[uid][1])
        assert {each.uid for each in self.world.unplaced()} == {*waiting, *self.ended}
        assert [each.uid for each in self.world.in_order()] == sorted(
            waiting, key=lambda uid: (-self.pods[uid].priority, self.arrivals[uid])
        )
        assert self.world.refusals.keys() <= {*waiting}
        assert {pod.uid for pod, _ in self.world.nominator.entries()} <= {*waiting, "uid-default-moved"}
        for uid in waiting:
            assert self.world.since(uid) == self.arrivals[uid][0]

    @invariant()
    def each_pod_has_its_policy_and_group(self) -> None:
        for pod in self.pods.values():
            is_other = pod.pod.spec.scheduler_name == "another"
            assert self.world.policy_of(pod) == ("" if is_other else "ours")
            assert self.world.is_served(pod) is not is_other
            name = group_of(pod.pod)
            key, found = self.world.group_of(pod)
            assert key == (f"default/{name}" if name else "")
            assert (found is not None) == (name in GROUPS)
            label = GROUPS[name][1] if name in GROUPS else ""
            assert self.world.required_label_of(pod) == label
            assert self.world.labels_of(pod) == ((label,) if label else ())
        assert self.chosen <= {"", "default-scheduler"}

    @invariant()
    def what_groups_need_is_counted(self) -> None:
        needs = {}
        for name, (least, key) in GROUPS.items():
            members = [uid for uid, pod in self.pods.items() if group_of(pod.pod) == name]
            standing = self.standing(name)
            waiting = [uid for uid in members if uid not in self.placed and uid not in self.ended]
            if waiting or standing:
                can_start = len(waiting) + len(standing) >= least and not (key and standing)
                needs[f"default/{name}"] = max(0, least - len(standing)) if can_start else NOT_YET
        assert self.world.gang_needs() == needs


def replace_phase(pod: Pod, phase: str) -> Pod:
    """The pod when it has ended."""
    return a_pod(
        pod.metadata.name,
        cpu="1",
        priority=pod.spec.priority,
        labels=pod.metadata.labels,
        status={"phase": phase},
    )


TestOffline = Offline.TestCase
TestOffline.settings = settings(
    max_examples=50, stateful_step_count=20, suppress_health_check=list(HealthCheck)
)


def in_queue(name: str, queue: str, cpu: str = "1", node: str = "") -> Pod:
    return a_pod(name, cpu=cpu, node=node, labels={"plimsoll.dev/queue": queue})


@pytest.mark.parametrize("others", [(), ("another",), ("a", "z")])
def test_waiting_pods_count_in_what_queues_deserve_until_they_have_a_place_or_leave(
    others: tuple[str, ...],
) -> None:
    """Of 8 cpu, a has 5 and b 3: b's fourth takes one of a's, but not while c waits for 8 and 8/3 are b's.

    Also if other profiles divide nothing.
    """
    sharing = {"queues": [{"name": each} for each in "abc"], "reclaim": "AboveDeserved"}
    config = ProfileConfig(
        "default-scheduler",
        policy="ours",
        plugins={MULTI_POINT: PluginSet(enabled=(Enabled("FairShare"),))},
        args={"FairShare": sharing},
    )
    profiles = {"default-scheduler": build_profile(config, REGISTRY, ENABLED)}
    profiles |= {name: build_profile(ProfileConfig(name), REGISTRY, ENABLED) for name in others}
    schedulers = Schedulers(dict(sorted(profiles.items())), Forecasts(default=ASSUMED), {})
    placed = [in_queue(f"a{at}", "a", node="n") for at in range(5)]
    placed += [in_queue(f"b{at}", "b", node="n") for at in range(3)]
    world = OfflineCluster(a_cluster([a_node("n", cpu="8")], placed), schedulers, ())
    fourth, large = (world.fork.templates.info(in_queue(*each)) for each in (("b9", "b"), ("c9", "c", "8")))

    def victims() -> int:
        nomination = world.attempt(fourth).nomination
        return 0 if nomination is None else len(nomination.victims)

    world.add(fourth)
    found = [victims()]
    world.add(large)
    found.append(victims())
    world.remove(large.uid)
    found.append(victims())
    world.add(large)
    found.append(victims())

    assert found == [1, 0, 1, 0]


def test_what_leaves_the_fork_otherwise_while_time_stands_still_makes_room() -> None:
    """Commands take pods off the fork themselves."""
    cluster = a_cluster([a_node("n", cpu="1")], [a_pod("there", cpu="1", node="n")])
    schedulers = Schedulers({"default-scheduler": SERVED}, Forecasts(default=ASSUMED), {})
    world = OfflineCluster(cluster, schedulers, ())
    world.add(cluster.templates.info(a_pod("next", cpu="1")))
    assert world.settle() == []
    cluster.displace("uid-default-there")

    assert [each.node for each in world.settle()] == ["n"]
