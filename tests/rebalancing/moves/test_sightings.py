"""Replacements are credited once, to the move that waits longest, in whatever order events arrive."""

from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.names import RecordKey, record_key
from plimsoll.rebalancing.moves.instructions import FollowReplacement, StopFollowing
from plimsoll.rebalancing.moves.sightings import ReplacementSightings
from plimsoll.testing.builders import a_pod
from rebalancing.moves.invariants import check_sightings
from rebalancing.moves.moved import a_sibling, a_spec

OWNER = "uid-ReplicaSet/web"


class Watch:
    """Sightings, and what they have told so far."""

    def __init__(self, *pods: Any) -> None:
        self.sightings = ReplacementSightings()
        self.told: list[Any] = []
        self.tell(*(PodAdded(pod) for pod in pods))

    def tell(self, *events: Any) -> list[tuple[str, ...]]:
        """What the watch brings; returns the events of moves that follow."""
        before = len(self.told)
        for event in events:
            self._keep(self.sightings.observe(event))
        return self.told[before:]

    def follow(self, pod: str = "web-1", since: Any = None, **spec: Any) -> list[tuple[str, ...]]:
        """A pod is asked to leave; returns the events of moves that follow."""
        before = len(self.told)
        self._keep(
            self.sightings.follow(
                FollowReplacement(record_key("default", f"{pod}-record"), a_spec(pod, **spec), since)
            )
        )
        return self.told[before:]

    def stop(self, pod: str = "web-1", spent: str = "") -> None:
        self.sightings.stop(StopFollowing(record_key("default", f"{pod}-record"), spent))
        check_sightings(self.sightings)

    def _keep(self, events: Any) -> None:
        check_sightings(self.sightings)
        for each in events:
            what = type(each).__name__.removeprefix("Replacement")
            self.told.append((each.key.removeprefix("default/").removesuffix("-record"), what, each.pod.name))


def changed(old: Pod, new: Pod) -> PodUpdated:
    """The watch tells that a pod is another way now."""
    return PodUpdated(old, new)


# -- one event for each change -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "last"),
    [pytest.param("good", "Ready", id="elsewhere"), pytest.param("bad", "Returned", id="same-node")],
)
def test_a_replacement_is_reported_step_by_step(node: str, last: str) -> None:
    """Bound is not running, and running is not ready; what does not concern the move is not reported."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()
    created, bound = a_sibling("web-2"), a_sibling("web-2", node, "Pending")
    running, ready = a_sibling("web-2", node, ready=False), a_sibling("web-2", node)

    steps = [
        watch.tell(PodAdded(created)),
        watch.tell(changed(created, created)),
        watch.tell(changed(created, bound)),
        watch.tell(changed(bound, running)),
        watch.tell(changed(running, running)),
        watch.tell(changed(running, ready)),
        watch.tell(changed(ready, running), PodDeleted(ready)),
    ]

    expected = ["Seen", None, "Seen", "Running", None, last, None]
    assert steps == [[("web-1", what, "web-2")] if what else [] for what in expected]


def test_a_replacement_that_is_ready_when_it_is_first_seen_is_reported_twice() -> None:
    """The room that is kept for it is handed over first."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()

    assert watch.tell(PodAdded(a_sibling("web-2", "good"))) == [
        ("web-1", "Seen", "web-2"),
        ("web-1", "Ready", "web-2"),
    ]


def test_a_restart_is_ready_on_the_node_that_it_left() -> None:
    """A fresh pod was the point."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow(purpose="Restart")

    assert watch.tell(PodAdded(a_sibling("web-2", "bad")))[-1] == ("web-1", "Ready", "web-2")


def test_a_pod_that_has_done_its_work_is_ready() -> None:
    """The pod of a Job may end before it was seen ready."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()

    assert watch.tell(PodAdded(a_sibling("web-2", "good", "Succeeded")))[-1] == ("web-1", "Ready", "web-2")


def test_a_ready_pod_on_its_way_out_is_no_replacement() -> None:
    """Its controller makes the pod that follows while it goes, and that is credited."""
    leaving = a_sibling("web-2", "good", deletionTimestamp="2026-01-01T00:00:00Z")
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()

    assert watch.tell(PodAdded(leaving)) == [("web-1", "Seen", "web-2"), ("web-1", "Lost", "web-2")]
    assert watch.tell(PodAdded(a_sibling("web-3", "good")), PodDeleted(leaving)) == [
        ("web-1", "Seen", "web-3"),
        ("web-1", "Ready", "web-3"),
    ]


# -- which pod is credited to which move -------------------------------------------------------------


def test_pods_that_were_there_before_are_no_replacements() -> None:
    """A sibling that becomes ready now was on its way anyway."""
    starting = a_sibling("web-2", "good", "Pending")
    watch = Watch(a_sibling("web-1", "bad"), starting)
    watch.follow()

    assert watch.tell(changed(starting, a_sibling("web-2", "good"))) == []


def test_each_replacement_is_credited_to_one_move() -> None:
    """The first replacement belongs to the move that waits longest."""
    watch = Watch(a_sibling("web-1", "bad"), a_sibling("web-2", "bad"))
    watch.follow("web-1")
    watch.follow("web-2")

    watch.tell(PodAdded(a_sibling("web-3")), PodAdded(a_sibling("web-4")), PodAdded(a_sibling("web-5")))

    assert watch.told == [("web-1", "Seen", "web-3"), ("web-2", "Seen", "web-4")]


def test_a_pod_that_was_ready_while_another_was_credited_is_not_credited_later() -> None:
    """The workload was scaled up; its controller makes another pod for one that is lost."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()
    watch.tell(PodAdded(a_sibling("web-2")), PodAdded(a_sibling("web-3", "good")))

    assert watch.tell(PodDeleted(a_sibling("web-2"))) == [("web-1", "Lost", "web-2")]
    assert watch.tell(PodAdded(a_sibling("web-4"))) == [("web-1", "Seen", "web-4")]


def two_for_one() -> tuple[Watch, list[tuple[str, ...]]]:
    """A moved pod for which two came, of which the first was taken away; what that tells."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()
    watch.tell(leaving(1), PodAdded(a_sibling("web-2")), PodAdded(a_sibling("web-3")))
    return watch, watch.tell(PodDeleted(a_sibling("web-2")))


def test_of_two_pods_that_came_the_one_that_stays_is_credited() -> None:
    """Somebody made one as well, and the controller took its own away: it makes no other."""
    watch, told = two_for_one()

    assert told == [("web-1", "Lost", "web-2"), ("web-1", "Seen", "web-3")]
    assert watch.tell(changed(a_sibling("web-3"), a_sibling("web-3", "good"))) == [
        ("web-1", "Ready", "web-3")
    ]


def test_the_one_that_stays_gives_way_to_the_pod_that_the_controller_makes() -> None:
    """The first was lost, and the second has another reason."""
    watch, _ = two_for_one()

    assert watch.tell(PodAdded(a_sibling("web-4"))) == [
        ("web-1", "Lost", "web-3"),
        ("web-1", "Seen", "web-4"),
    ]


def leaving(number: int) -> PodUpdated:
    """The watch tells that a pod is on its way out."""
    pod = a_sibling(f"web-{number}", "bad")
    return changed(pod, a_sibling(pod.name, "bad", deletionTimestamp="2026-01-01T00:00:00Z"))


@pytest.mark.parametrize("how", ["leaving", "deleted"])
def test_a_pod_that_came_before_the_moved_one_left_gives_way(how: str) -> None:
    """Somebody scaled the workload up between the announcement and the eviction."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()

    watch.tell(PodAdded(a_sibling("web-2")))
    watch.tell(leaving(1) if how == "leaving" else PodDeleted(a_sibling("web-1", "bad")))
    watch.tell(PodAdded(a_sibling("web-3")), PodAdded(a_sibling("web-4")))

    assert watch.told == [
        ("web-1", "Seen", "web-2"),
        ("web-1", "Lost", "web-2"),
        ("web-1", "Seen", "web-3"),
    ]


def test_an_early_pod_is_credited_to_the_next_move() -> None:
    """A list after a gap may have shown it before its predecessor left."""
    watch = Watch(a_sibling("web-1", "bad"), a_sibling("web-2", "bad"))
    watch.follow("web-1")
    watch.follow("web-2")

    watch.tell(PodAdded(a_sibling("web-3")), leaving(1), leaving(2), PodAdded(a_sibling("web-4")))

    assert watch.told == [
        ("web-1", "Seen", "web-3"),
        ("web-1", "Lost", "web-3"),
        ("web-1", "Seen", "web-4"),
        ("web-2", "Seen", "web-3"),
    ]


def test_an_early_pod_replaces_the_moved_one_if_no_other_pod_comes() -> None:
    """Who responds to a request for the eviction may have it replaced first."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()

    watch.tell(PodAdded(a_sibling("web-2")), leaving(1))

    assert watch.tell(changed(a_sibling("web-2"), a_sibling("web-2", "good"))) == [
        ("web-1", "Ready", "web-2")
    ]


@pytest.mark.parametrize("is_gone", [False, True])
def test_after_a_restart_a_pod_that_left_before_has_its_replacement(is_gone: bool) -> None:
    """A younger pod does not take its place."""
    moved = a_sibling("web-1", "bad", deletionTimestamp="2026-01-01T00:00:00Z")
    made = a_sibling("web-2", creationTimestamp="2026-01-01T00:00:00Z")
    watch = Watch(*([] if is_gone else [moved]), made)
    watch.follow(since=datetime(2026, 1, 1, tzinfo=UTC))

    watch.tell(PodAdded(a_sibling("web-3")))

    assert watch.told == [("web-1", "Seen", "web-2")]


@pytest.mark.parametrize(
    "stranger",
    [
        pytest.param(a_sibling("api-1", "good", owner="api"), id="other-owner"),
        pytest.param(a_pod("bare", node="good"), id="no-owner"),
        pytest.param(a_sibling("web-2", "good", namespace="mallory"), id="other-namespace"),
    ],
)
@pytest.mark.parametrize("is_late", [False, True], ids=["before", "after"])
def test_pods_of_others_do_not_count(stranger: Pod, is_late: bool) -> None:
    """Users who may create pods in another namespace would be sent to the node that was freed."""
    watch = Watch(a_sibling("web-1", "bad"))
    events = [PodAdded(stranger)]
    if not is_late:
        watch.tell(*events)
    watch.follow(since=datetime(2020, 1, 1, tzinfo=UTC) if not is_late else None)
    if is_late:
        watch.tell(*events)

    assert watch.told == []
    assert watch.tell(PodAdded(a_sibling("web-9", "good")))[-1] == ("web-1", "Ready", "web-9")


@pytest.mark.parametrize(
    "spec",
    [{"owner": ""}, {"surge": {"deployment": "web", "uid": "uid-Deployment/web", "template": "abc"}}],
    ids=["no-owner", "surge"],
)
def test_a_move_that_is_not_replaced_by_its_controller_is_not_followed(spec: dict[str, Any]) -> None:
    """No controller, no replacement; and a surge is followed by its mark."""
    watch = Watch()

    assert watch.follow(**spec) == []
    assert watch.tell(PodAdded(a_sibling("web-2", "good"))) == []


@pytest.mark.parametrize("how", ["failed", "leaving", "deleted", "released"])
def test_a_replacement_that_is_lost_is_followed_by_the_next(how: str) -> None:
    """Refused by the kubelet, on its way out, deleted, or let go by a changed label."""
    pod = a_sibling("web-2", "good", ready=False)
    lost = {
        "failed": changed(pod, a_sibling("web-2", "good", "Failed")),
        "leaving": changed(
            pod, a_sibling("web-2", "good", ready=False, deletionTimestamp="2026-01-01T00:00:00Z")
        ),
        "deleted": PodDeleted(pod),
        "released": changed(pod, a_pod("web-2", node="good")),
    }[how]
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()
    watch.tell(PodAdded(pod))

    assert watch.tell(lost) == [("web-1", "Lost", "web-2")]
    assert watch.tell(PodAdded(a_sibling("web-3", "good")))[-1] == ("web-1", "Ready", "web-3")


@pytest.mark.parametrize(
    ("phase", "last"), [("Failed", "Lost"), ("Running", "Ready")], ids=["failed", "ready"]
)
def test_a_replacement_that_was_reported_is_credited_to_no_later_move(phase: str, last: str) -> None:
    """It failed, and its controller has made another one; or it was ready, and ended a move."""
    pod = a_sibling("web-2", "good", phase, creationTimestamp="2026-01-02T00:00:00Z")
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow()
    watch.tell(PodAdded(pod))

    assert watch.told[-1] == ("web-1", last, "web-2")
    assert watch.follow("web-9", since=datetime(2026, 1, 1, tzinfo=UTC)) == []


def test_a_pod_that_failed_before_replaces_no_pod() -> None:
    """After a restart nothing is known of it but its phase."""
    watch = Watch(a_sibling("web-2", "good", "Failed", creationTimestamp="2026-01-02T00:00:00Z"))

    assert watch.follow(since=datetime(2026, 1, 1, tzinfo=UTC)) == []


# -- stopping ----------------------------------------------------------------------------------------


def test_a_move_that_ended_gets_no_replacement() -> None:
    """Refused or timed out; the pod that comes then belongs to the next move."""
    watch = Watch(a_sibling("web-1", "bad"), a_sibling("web-2", "bad"))
    watch.follow("web-1")
    watch.follow("web-2")
    watch.stop("web-1")

    assert watch.tell(PodAdded(a_sibling("web-3"))) == [("web-2", "Seen", "web-3")]


@pytest.mark.parametrize(("spent", "credited"), [("uid-default-web-2", []), ("", ["web-2"])])
def test_the_replacement_of_a_move_that_ended_replaces_no_other_pod(spent: str, credited: list[str]) -> None:
    """If the record names it; one that never ran may be what a later move is credited with."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow("web-1")
    watch.tell(PodAdded(a_sibling("web-2", creationTimestamp="2026-01-02T00:00:00Z")))
    watch.stop("web-1", spent)

    seen = watch.follow("web-9", since=datetime(2026, 1, 1, tzinfo=UTC))

    assert [pod for _, _, pod in seen] == credited


def test_a_replacement_that_is_gone_is_not_kept() -> None:
    """It left before the record was closed."""
    watch = Watch(a_sibling("web-1", "bad"))
    watch.follow("web-1")
    watch.tell(PodAdded(a_sibling("web-2")), PodDeleted(a_sibling("web-2")))

    watch.stop("web-1", "uid-default-web-2")

    assert not watch.sightings._spent


# -- after a restart ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("created", "credited"),
    [
        pytest.param("2025-12-31T23:59:59Z", [], id="before"),
        pytest.param("2026-01-01T00:00:00Z", ["web-2"], id="when-it-was-sent"),
        pytest.param("2026-01-01T00:00:09Z", ["web-2"], id="after"),
        pytest.param(None, [], id="unknown"),
    ],
)
def test_siblings_made_since_the_eviction_may_be_the_replacement(
    created: str | None, credited: list[str]
) -> None:
    """An earlier process sent the eviction; pods older than that replace no pod."""
    metadata = {"creationTimestamp": created} if created else {}
    watch = Watch(a_sibling("web-2", "good", "Pending", **metadata))

    seen = watch.follow(since=datetime(2026, 1, 1, tzinfo=UTC))

    assert [pod for _, _, pod in seen] == credited


@pytest.mark.parametrize("names", [["web-7", "web-8"], ["web-8", "web-7"]])
def test_the_oldest_sibling_made_since_is_credited(names: list[str]) -> None:
    """The younger one replaces a pod that was evicted later; the oldest would be too old for that."""
    made = {"web-7": "2026-01-01T00:00:00Z", "web-8": "2026-01-01T00:00:01Z"}
    watch = Watch(*(a_sibling(name, "good", "Pending", creationTimestamp=made[name]) for name in names))

    watch.follow("web-1", since=datetime(2026, 1, 1, tzinfo=UTC))
    watch.follow("web-2", since=datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC))

    assert watch.told == [("web-1", "Seen", "web-7"), ("web-2", "Seen", "web-8")]


def test_a_sibling_on_the_target_of_another_move_is_left_to_that() -> None:
    """It is older than the one that waits, whose own target would be free for others then."""
    watch = Watch(
        a_sibling("web-7", "good", "Pending", creationTimestamp="2026-01-01T00:00:00Z"),
        a_sibling("web-8", creationTimestamp="2026-01-01T00:00:01Z"),
    )

    watch.follow("web-1", since=datetime(2026, 1, 1, tzinfo=UTC), target="best")
    watch.follow("web-2", since=datetime(2026, 1, 1, tzinfo=UTC))

    assert watch.told == [("web-1", "Seen", "web-8"), ("web-2", "Seen", "web-7")]


TARGETS, SECONDS = st.sampled_from(["good", "best"]), st.integers(0, 3)


@settings(max_examples=200)
@given(
    moves=st.lists(st.tuples(SECONDS, TARGETS), min_size=1, max_size=4),
    made=st.lists(st.tuples(SECONDS, TARGETS | st.just("")), max_size=4),
)
def test_as_many_moves_as_possible_find_a_pod(
    moves: list[tuple[int, str]], made: list[tuple[int, str]]
) -> None:
    """Taken over in the order of recovery, whatever suits each best."""
    pods = [
        a_sibling(f"web-{number}", node, "Pending", creationTimestamp=f"2026-01-01T00:00:0{at}Z")
        for number, (at, node) in enumerate(made, 10)
    ]
    watch = Watch(*pods)
    ordered = sorted(enumerate(moves), key=lambda each: -each[1][0])

    for number, (sent, target) in ordered:
        watch.follow(f"web-{number}", since=datetime(2026, 1, 1, 0, 0, sent, tzinfo=UTC), target=target)

    possible = max(
        sum(sent <= at for (sent, _), (at, _) in zip(moves, order, strict=False))
        for order in permutations([*made, *[(-1, "")] * len(moves)], len(moves))
    )
    assert len(watch.told) == possible


def test_a_sibling_that_terminates_is_not_credited_after_a_restart() -> None:
    """It was evicted as well, in the second in which it was made; it replaces no pod."""
    made = "2026-01-01T00:00:00Z"
    leaving = a_sibling("web-2", "bad", creationTimestamp=made, deletionTimestamp=made)
    watch = Watch(leaving, a_sibling("web-3", "good", "Pending", creationTimestamp=made))

    assert watch.follow(since=datetime(2026, 1, 1, tzinfo=UTC)) == [("web-1", "Seen", "web-3")]


def test_the_moved_pod_does_not_replace_itself() -> None:
    """It may be younger than the record says, where clocks differ."""
    watch = Watch(a_sibling("web-1", "bad", creationTimestamp="2027-01-01T00:00:00Z"))

    assert watch.follow(since=datetime(2026, 1, 1, tzinfo=UTC)) == []


def test_siblings_are_kept_as_long_as_they_live() -> None:
    """Nothing is kept of a pod that its owner let go and that was deleted then."""
    released = a_pod("web-1", node="bad")
    watch = Watch(a_sibling("web-1", "bad"))
    before = dict(watch.sightings.siblings(OWNER))
    watch.follow()
    watch.tell(PodAdded(a_sibling("web-2", "good")), PodDeleted(a_sibling("web-2", "good")))

    watch.tell(changed(a_sibling("web-1", "bad"), released), PodDeleted(released))

    assert list(before) == ["uid-default-web-1"]
    assert watch.sightings == ReplacementSightings()


# -- anything ----------------------------------------------------------------------------------------

NAMES = [f"web-{number}" for number in range(1, 6)]
POD_STATES = st.one_of(
    st.none(),
    st.builds(
        a_sibling,
        st.just("?"),
        st.sampled_from(["", "bad", "good"]),
        st.sampled_from(["Pending", "Running", "Failed", "Succeeded"]),
        st.sampled_from(["web", "api"]),
        ready=st.booleans(),
        namespace=st.just("default"),
    ),
)
ACTIONS = st.one_of(
    st.tuples(st.just("pod"), st.sampled_from(NAMES), POD_STATES),
    st.tuples(st.just("follow"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("stop"), st.sampled_from(NAMES), st.booleans()),
)


@settings(max_examples=3 * settings.default.max_examples)
@given(st.lists(ACTIONS, max_size=40))
def test_whatever_happens_each_pod_replaces_one_pod(actions: list[tuple[str, str, Any]]) -> None:
    """Seen comes first, nothing follows the last word, no pod is credited to two moves simultaneously."""
    watch, followed = Watch(), {}
    pods: dict[Any, Any] = {}
    told: dict[Any, Any] = {}
    for what, name, how in actions:
        before = len(watch.told)
        if what == "pod":
            old = pods.pop(name, None)
            if how is not None:
                pods[name] = _named(how, name)
                watch.tell(PodAdded(pods[name]) if old is None else PodUpdated(old, pods[name]))
            elif old is not None:
                watch.tell(PodDeleted(old))
        elif what == "follow" and name not in followed:
            followed[name] = True
            watch.follow(name, since=datetime(1990, 1, 1, tzinfo=UTC) if how else None)
        elif what == "stop":
            followed.pop(name, None)
            spent = told.pop(name, None)
            watch.stop(name, f"uid-default-{spent}" if how and spent else "")
        for move, event, pod in watch.told[before:]:
            assert move in followed, "only moves that are followed are reported"
            assert pod != move, "no pod replaces itself"
            if told.get(move) is None:
                assert event == "Seen", "the first event of a replacement"
                assert pod not in told.values(), "credited to another move"
            else:
                assert told[move] == pod, "a move has one replacement"
            told[move] = None if event in {"Lost", "Ready", "Returned"} else pod
            if event in {"Ready", "Returned"}:
                del followed[move], told[move]


def _named(pod: Pod, name: str) -> Pod:
    """The same under another name."""
    return a_sibling(
        name,
        pod.node_name,
        pod.status.phase,
        pod.metadata.controller.name,
        ready=pod.is_ready,
        creationTimestamp="2026-01-01T00:00:00Z",
    )


@pytest.mark.parametrize(("owner", "spent"), [("", {"uid-default-web-2"}), ("uid-other", set())])
def test_the_replacement_that_a_finished_record_names_is_spent_while_it_is_there(
    owner: str, spent: set[str]
) -> None:
    """Records last longer than pods: what is gone is not kept."""
    watch = Watch(a_sibling("web-2"))
    (known,) = watch.sightings._siblings
    named = owner or known

    watch.sightings.stop(StopFollowing(RecordKey("default/old-record"), "uid-default-web-2", named))
    watch.sightings.stop(StopFollowing(RecordKey("default/older-record"), "uid-default-web-0", named))

    assert watch.sightings._spent == spent
    watch.tell(PodDeleted(a_sibling("web-2")))
    assert not watch.sightings._spent


# -- groups that are made again ----------------------------------------------------------------------

TRAIN = {"plimsoll.dev/pod-group": "train"}
BUNDLE = {"name": "b", "moves": 2, "position": 1, "group": "PodGroup default/train"}


def worker(name: str, owner: str, cpu: str = "1") -> Pod:
    return a_pod(name, owner=f"ReplicaSet/{owner}", cpu=cpu, labels=TRAIN)


def a_group_that_left(watch: Watch) -> None:
    """A leader that requests more than its worker; both have left."""
    for pod in (worker("a-1", "web"), worker("lead-1", "web", cpu="4")):
        watch.tell(PodAdded(pod))
        watch.follow(pod.name, bundle=BUNDLE)
        watch.tell(PodDeleted(pod))


def test_a_pod_of_the_group_replaces_one_that_requested_the_same() -> None:
    """Its controller has another name; a pod of another group replaces none."""
    watch = Watch()
    a_group_that_left(watch)

    stranger = a_pod("b-1", owner="ReplicaSet/other", cpu="4", labels={"plimsoll.dev/pod-group": "b"})
    assert watch.tell(PodAdded(stranger)) == []
    assert watch.tell(PodAdded(worker("b-1", "web2", cpu="4"))) == [("lead-1", "Seen", "b-1")]
    assert watch.tell(PodAdded(worker("b-2", "web2"))) == [("a-1", "Seen", "b-2")]
    assert watch.tell(PodAdded(worker("b-3", "web2"))) == []


def test_the_pod_of_the_controller_itself_goes_before_one_of_the_group() -> None:
    """A Job that joined the group meanwhile has started nothing over."""
    watch = Watch()
    a_group_that_left(watch)

    watch.tell(PodAdded(worker("b-1", "web2", cpu="4")))
    assert watch.tell(PodAdded(worker("lead-2", "web", cpu="4"))) == [
        ("lead-1", "Lost", "b-1"),
        ("lead-1", "Seen", "lead-2"),
        ("a-1", "Seen", "b-1"),
    ]


def test_a_member_that_has_left_is_replaced_before_one_that_is_about_to_leave() -> None:
    """Although the new name has the number of the latter."""
    watch = Watch(worker("a-1", "web"), worker("a-2", "web"))
    for name in ("a-1", "a-2"):
        watch.follow(name, bundle=BUNDLE)
    watch.tell(PodDeleted(worker("a-1", "web")))

    assert watch.tell(PodAdded(worker("b-2", "web"))) == [("a-1", "Seen", "b-2")]


def test_a_member_that_still_runs_is_not_replaced_by_a_new_one_of_the_group() -> None:
    """An elastic group may grow at that moment."""
    watch = Watch(worker("a-1", "web"))
    watch.follow("a-1", bundle=BUNDLE)

    assert watch.tell(PodAdded(worker("b-1", "web2"))) == []
