"""DevicePromise finds devices in use twice, and bindings without claims of their own."""

from typing import Any

import pytest

from promises.commits import UNKNOWN, Author, Commit, Obj
from promises.devices import CLAIMS, CONTESTED_S, DevicePromise
from promises.findings import Findings
from promises.view import SLICES, View

CORE = "scheduling.k8s.io"
TRAIN = {"schedulingGroup": {"podGroupName": "train"}}


def consumer(resource: str, name: str, uid: str = "", group: str = "") -> Obj:
    """Whom a claim is reserved for."""
    return {"resource": resource, "apiGroup": group, "name": name, "uid": uid or name}


class Story:
    """Commits of a cluster with one node and a GPU, a shared device and three parts of a third one on it."""

    def __init__(self, *others: str) -> None:
        self.view, self.findings = View(), Findings()
        self.promise = DevicePromise(self.view, self.findings, frozenset(others))
        self.write("nodes", {"metadata": {"name": "n"}})
        counters = {"sharedCounters": [{"name": "s", "counters": {"m": {"value": "4"}}}]}
        draws, rest = ([{"counterSet": "s", "counters": {"m": {"value": value}}}] for value in ("3", "1"))
        memory = {"capacity": {"memory": {"value": "10"}}}
        devices = [
            {"name": "gpu"},
            {"name": "net", "allowMultipleAllocations": True, **memory},
            {"name": "part-1", "consumesCounters": draws},
            {"name": "part-2", "consumesCounters": draws},
            {"name": "part-3", "consumesCounters": rest},
        ]
        for name, spec in (("counters", counters), ("devices", {"devices": devices})):
            pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
            self.write(SLICES, {"metadata": {"name": name}, "spec": {"driver": "d", "pool": pool, **spec}})

    def write(
        self,
        collection: str,
        obj: Obj,
        at: float = 0.0,
        kind: str = "MODIFIED",
        author: Author = UNKNOWN,
    ) -> None:
        """A commit."""
        meta = obj["metadata"]
        before = self.view.find(collection, meta.get("namespace") or "", meta["name"])
        commit = Commit(collection, kind, obj, before, author, at)
        self.view.see(commit)
        self.promise.judge(commit)

    def claim(
        self,
        name: str,
        *devices: str,
        users: str = "",
        node: str = "n",
        reserved: list[Obj] | None = None,
        terms: list[Obj] | None = None,
        at: float = 0.0,
        **more: Any,
    ) -> None:
        """A claim with these devices, reserved for these pods; without any it is not allocated."""
        results = [{"request": "r", "driver": "d", "pool": "p", "device": each, **more} for each in devices]
        if terms is None:
            terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        status: Obj = {"reservedFor": [consumer("pods", each) for each in users] + (reserved or [])}
        if devices:
            selector = {"nodeSelector": {"nodeSelectorTerms": terms}} if terms else {}
            status["allocation"] = {"devices": {"results": results}, **selector}
        owner = {"kind": "Pod", "name": users[:1], "uid": users[:1]}
        meta = {"name": name, "namespace": "x", "uid": name, "ownerReferences": [owner] if users else []}
        self.write(CLAIMS, {"metadata": meta, "status": status}, at)

    def waiting(self, name: str, *claims: str, scheduler: str = "", at: float = 0.0) -> Obj:
        """A pod that is created."""
        meta = {"name": name, "namespace": "x", "uid": name}
        wants = [{"name": each, "resourceClaimName": each} for each in claims]
        pod = {"metadata": meta, "spec": {"resourceClaims": wants, "schedulerName": scheduler}}
        self.write("pods", pod, at, "ADDED")
        return pod

    def pod(self, name: str, *claims: str, node: str = "n", at: float = 0.0) -> None:
        """A pod that is created and bound."""
        self.bind(self.waiting(name, *claims, at=at), node, at)

    def bind(self, pod: Obj, node: str = "n", at: float = 0.0) -> None:
        """A pod gets a node."""
        self.write("pods", {**pod, "spec": {**pod["spec"], "nodeName": node}}, at)

    @property
    def found(self) -> list[str]:
        """Violations, without their time."""
        return [each.partition(" ")[2] for each in self.findings.violations]


def test_pods_with_devices_of_their_own_are_well() -> None:
    """Also where one claim gives way that had a device of the other's."""
    story = Story()
    story.claim("one", "gpu", users="a")
    story.claim("two", "gpu", users="b")
    story.claim("two")
    story.pod("a", "one")
    story.claim("two", "part-1", users="b")
    story.pod("b", "two")

    assert story.found == []
    assert story.promise.contested == 1
    assert story.promise.unfinished() == []


def shares(story: Story, each: str, other: str, **more: Any) -> None:
    """Two pods, each with a device."""
    story.claim("one", each, users="a", **more)
    story.claim("two", other, users="b", **more)
    story.pod("a", "one")
    story.pod("b", "two")


@pytest.mark.parametrize(
    ("device", "other", "more", "problem"),
    [
        pytest.param("gpu", "gpu", {}, "d/p/gpu is in use twice: one, two", id="a-device"),
        pytest.param(
            "part-1", "part-2", {}, "6000 of 4000 milli of the counter s/m", id="counters-of-two-devices"
        ),
        pytest.param(
            "net",
            "net",
            {"shareID": "s", "consumedCapacity": {"memory": "6"}},
            "12000 of 10000 milli memory of d/p/net: one, two",
            id="capacity",
        ),
    ],
)
def test_a_device_in_use_twice_is_found(device: str, other: str, more: Obj, problem: str) -> None:
    """When the second pod is bound; and at the end. Contested is what both have."""
    story = Story()
    shares(story, device, other, **more)

    assert f"b was bound to n: {problem}" in story.found
    assert any(problem in each for each in story.promise.unfinished())
    assert story.promise.contested == (device == other)


@pytest.mark.parametrize(
    ("device", "other", "more"),
    [
        pytest.param("net", "net", {"shareID": "s", "consumedCapacity": {"memory": "5"}}, id="capacity"),
        pytest.param("part-1", "part-3", {}, id="counters-to-the-last"),
        pytest.param("gpu", "gpu", {"adminAccess": True}, id="only-watched"),
    ],
)
def test_shares_that_fit_are_well(device: str, other: str, more: Obj) -> None:
    """That is what they are for, up to the last of what there is."""
    story = Story()
    shares(story, device, other, **more)

    assert story.found == []
    assert story.promise.contested == 0
    assert story.promise.unfinished() == []


@pytest.mark.parametrize(
    ("pool", "generation", "capacity", "consumed", "problem"),
    [
        pytest.param("p", 0, "5", "5", "", id="an-older-one-had-less"),
        pytest.param("p", 2, "5", "5", "10000 of 5000", id="the-latest-has-less"),
        pytest.param("p", 2, "20", "6", "", id="the-latest-has-more"),
        pytest.param("q", 2, "20", "6", "12000 of 10000", id="a-later-one-of-another-pool"),
    ],
)
def test_the_latest_generation_of_a_pool_says_what_a_device_has(
    pool: str, generation: int, capacity: str, consumed: str, problem: str
) -> None:
    """Whichever slice was written last."""
    story = Story()
    device = {"name": "net", "capacity": {"memory": {"value": capacity}}}
    spec = {"driver": "d", "pool": {"name": pool, "generation": generation}, "devices": [device]}
    story.write(SLICES, {"metadata": {"name": "another"}, "spec": spec})
    shares(story, "net", "net", shareID="s", consumedCapacity={"memory": consumed})

    said = f"b was bound to n: {problem} milli memory of d/p/net: one, two"
    assert story.found == ([said] if problem else [])


@pytest.mark.parametrize(
    ("reserved", "spec", "is_its_own"),
    [
        pytest.param([consumer("pods", "a")], {}, True, id="pod"),
        pytest.param([consumer("pods", "a", "old")], {}, False, id="an-earlier-pod"),
        pytest.param([consumer("podgroups", "train", group=CORE)], TRAIN, True, id="group"),
        pytest.param([consumer("podgroups", "train", group=CORE)], {}, False, id="no-member"),
        pytest.param([consumer("podgroups", "serve", group=CORE)], TRAIN, False, id="another-group"),
        pytest.param([consumer("podgroups", "train", group="x")], TRAIN, False, id="group-of-another-api"),
        pytest.param([consumer("workloads", "train", group=CORE)], TRAIN, False, id="no-group"),
        pytest.param(
            [consumer("pods", "b"), consumer("podgroups", "train", group=CORE)], TRAIN, True, id="both"
        ),
    ],
)
def test_a_claim_is_reserved_for_a_pod_or_its_group(reserved: list[Obj], spec: Obj, is_its_own: bool) -> None:
    """A group of the core API, which the pod names."""
    story = Story()
    story.claim("one", "gpu", reserved=reserved)
    pod = story.waiting("a", "one")
    story.bind({**pod, "spec": {**pod["spec"], **spec}})

    said = [] if is_its_own else ["a was bound to n: its claim one is not reserved for it"]
    assert story.found == said


@pytest.mark.parametrize(
    ("reserved", "meta", "more", "is_in_use"),
    [
        pytest.param(consumer("pods", "b"), {}, {}, True, id="runs"),
        pytest.param(consumer("pods", "b"), {}, {"spec": {}}, False, id="waits"),
        pytest.param(consumer("pods", "b"), {}, {"status": {"phase": "Failed"}}, False, id="is-over"),
        pytest.param(consumer("pods", "b"), {"uid": "new"}, {}, False, id="another-of-its-name"),
        pytest.param(consumer("podgroups", "train", group=CORE), {}, {}, True, id="member"),
        pytest.param(consumer("podgroups", "serve", group=CORE), {}, {}, False, id="of-another-group"),
        pytest.param(
            consumer("podgroups", "train", group=CORE),
            {"namespace": "y"},
            {},
            False,
            id="of-another-namespace",
        ),
        pytest.param(
            consumer("podgroups", "train", group=CORE), {}, {"spec": TRAIN}, False, id="member-that-waits"
        ),
    ],
)
def test_a_claim_is_in_use_when_its_pod_has_a_node(
    reserved: Obj, meta: Obj, more: Obj, is_in_use: bool
) -> None:
    """Only then may no other pod get its device, and may it not lose it."""
    story = Story()
    story.claim("two", "gpu", reserved=[reserved])
    metadata = {"name": "b", "namespace": "x", "uid": "b", **meta}
    pod = {"metadata": metadata, "spec": {**TRAIN, "nodeName": "n"}, **more}
    story.write("pods", pod, kind="ADDED")
    story.claim("one", "gpu", users="a")
    story.pod("a", "one")
    story.claim("two", reserved=[reserved])

    said = [
        "a was bound to n: d/p/gpu is in use twice: one, two",
        "the claim two lost its devices while b has a node",
    ]
    assert story.found == (said if is_in_use else [])


def expression(operator: str, key: str, *values: str) -> Obj:
    """One of a term."""
    return {"key": key, "operator": operator, "values": [*values]}


IN_A, IN_B = expression("In", "zone", "a"), expression("In", "zone", "b")


@pytest.mark.parametrize(
    ("terms", "is_there"),
    [
        pytest.param([[IN_A]], True, id="in"),
        pytest.param([[IN_B]], False, id="not-in-it"),
        pytest.param([[expression("In", "rack", "a")]], False, id="in-without-it"),
        pytest.param([[expression("NotIn", "zone", "a")]], False, id="excluded"),
        pytest.param([[expression("NotIn", "zone", "b")]], True, id="not-excluded"),
        pytest.param([[expression("Exists", "zone")]], True, id="exists"),
        pytest.param([[expression("Exists", "rack")]], False, id="exists-without-it"),
        pytest.param([[expression("DoesNotExist", "zone")]], False, id="does-not-exist-with-it"),
        pytest.param([[expression("DoesNotExist", "rack")]], True, id="does-not-exist"),
        pytest.param([[expression("Near", "zone", "a")]], False, id="unknown"),
        pytest.param([[IN_B], [IN_A]], True, id="either-term"),
        pytest.param([[IN_A, IN_B]], False, id="both-expressions"),
        pytest.param([], True, id="everywhere"),
    ],
)
def test_devices_are_reached_from_nodes_with_labels(terms: list[list[Obj]], is_there: bool) -> None:
    """As the allocation's selector says; one without a selector is reached from everywhere."""
    story = Story()
    story.write("nodes", {"metadata": {"name": "n", "labels": {"zone": "a"}}})
    story.claim("one", "gpu", users="a", terms=[{"matchExpressions": each} for each in terms])
    story.pod("a", "one")

    assert story.found == ([] if is_there else ["a was bound to n: its claim one is not allocated there"])


def test_a_node_that_is_gone_has_no_labels() -> None:
    """Nor has one without any."""
    story = Story()
    story.claim("one", "gpu", users="ab", terms=[{"matchExpressions": [IN_A]}])
    story.pod("a", "one")
    story.pod("b", "one", node="gone")

    assert story.found == [
        "a was bound to n: its claim one is not allocated there",
        "b was bound to gone: its claim one is not allocated there",
    ]


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        pytest.param({}, "its claim one is not allocated", id="not-allocated"),
        pytest.param({"node": "m", "users": "a"}, "its claim one is not allocated there", id="elsewhere"),
        pytest.param({"users": "b"}, "its claim one is not reserved for it", id="not-reserved"),
    ],
)
def test_a_pod_that_is_bound_without_its_claim_is_found(claim: dict[str, Any], problem: str) -> None:
    """Its kubelet would not start it."""
    story = Story()
    story.claim("one", *(("gpu",) if claim else ()), **claim)
    story.pod("a", "one")

    assert story.found == [f"a was bound to n: {problem}"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        pytest.param([CONTESTED_S], [], id="in-time"),
        pytest.param(
            [CONTESTED_S + 1, CONTESTED_S + 2], ["d/p/gpu was allocated twice for long: one, two"], id="late"
        ),
    ],
)
def test_claims_that_give_no_way_are_found(seconds: list[float], said: list[str]) -> None:
    """After half a minute, once; a claim with another device has no part in it."""
    story = Story()
    for name, device in (("one", "gpu"), ("two", "gpu"), ("three", "part-1")):
        story.claim(name, device, at=100.0)
    for each in seconds:
        story.write("nodes", {"metadata": {"name": "n"}}, 100.0 + each)

    assert story.found == said
    assert story.promise.unfinished() == ["d/p/gpu is allocated twice at the end"]


@pytest.mark.parametrize(
    ("owner", "meta", "phase", "is_needed"),
    [
        pytest.param({}, {}, "Running", True, id="lives"),
        pytest.param({"kind": "ReplicaSet"}, {}, "Running", False, id="another-kind"),
        pytest.param({"uid": "old"}, {}, "Running", False, id="another-of-its-name"),
        pytest.param({}, {}, "Succeeded", False, id="is-over"),
        pytest.param({}, {"deletionTimestamp": "now"}, "Running", False, id="leaves"),
        pytest.param({"name": "gone"}, {}, "Running", False, id="is-gone"),
    ],
)
def test_a_claim_is_deleted_after_the_pod_it_was_made_for(
    owner: Obj, meta: Obj, phase: str, is_needed: bool
) -> None:
    """A pod that is over or leaves needs it no more."""
    story = Story()
    mine = {"name": "a", "namespace": "x", "uid": "a"}
    story.write("pods", {"metadata": {**mine, **meta}, "spec": {}, "status": {"phase": phase}})
    owned = {**mine, "name": "one", "ownerReferences": [{"kind": "Pod", "name": "a", "uid": "a", **owner}]}
    story.write(CLAIMS, {"metadata": owned}, kind="DELETED")

    assert story.found == (["the claim one of a was deleted"] if is_needed else [])


@pytest.mark.parametrize(
    ("meta", "spec", "status", "is_wrong"),
    [
        pytest.param({}, {"nodeName": "n"}, {}, True, id="runs"),
        pytest.param({}, {}, {}, False, id="waits"),
        pytest.param({}, {"nodeName": "n"}, {"phase": "Succeeded"}, False, id="is-over"),
        pytest.param({"deletionTimestamp": "now"}, {"nodeName": "n"}, {}, False, id="leaves"),
    ],
)
def test_at_the_end_pods_that_run_have_their_claims(
    meta: Obj, spec: Obj, status: Obj, is_wrong: bool
) -> None:
    """Others need none."""
    story = Story()
    pod = story.waiting("a", "one")
    story.write(
        "pods",
        {"metadata": {**pod["metadata"], **meta}, "spec": {**pod["spec"], **spec}, "status": status},
    )

    said = ["a on n, at the end: its claim one is not allocated"] if is_wrong else []
    assert story.promise.unfinished() == said


def test_a_claim_that_is_written_again_is_not_allocated_again() -> None:
    """The other's came last, though ours is reserved for one more pod since."""
    story = Story("other")
    for name, claim, scheduler in (("a", "one", "ours"), ("b", "two", "other")):
        story.waiting(name, claim, scheduler=scheduler)
        story.claim(claim, "gpu", users=name)
    story.claim("one", "gpu", users="ac")
    story.write("nodes", {"metadata": {"name": "n"}}, CONTESTED_S + 1)

    assert story.found == []
    assert len(story.promise.theirs) == 1


def test_a_claim_that_is_written_without_devices_is_not_allocated() -> None:
    """One of our processes may write a claim for other reasons."""
    story = Story()
    meta = {"name": "c", "namespace": "x", "uid": "c"}
    story.write(CLAIMS, {"metadata": meta, "spec": {"devices": {"requests": [ONE]}}}, author=OURS)

    assert story.found == []


@pytest.mark.parametrize(
    ("device", "second", "third", "more"),
    [
        pytest.param("gpu", "gpu", "net", {}, id="another-device"),
        pytest.param("part-1", "part-2", "gpu", {"pool": "q"}, id="another-pool"),
    ],
)
def test_who_allocates_something_else_last_is_not_at_fault(
    device: str, second: str, third: str, more: Obj
) -> None:
    """Two of ours have too much, and then one of the others gets what is free."""
    story = Story("other")
    pods = [
        story.waiting(name, claim, scheduler=scheduler)
        for name, claim, scheduler in (("a", "one", "ours"), ("b", "two", "ours"), ("c", "three", "other"))
    ]
    story.claim("one", device, users="a")
    story.claim("two", second, users="b")
    story.claim("three", third, users="c", **more)
    for pod in reversed(pods):
        story.bind(pod)

    assert [each.partition(":")[0] for each in story.found] == ["a was bound to n"]
    assert story.promise.theirs == []


def test_a_lost_claim_is_found() -> None:
    """Deleted, given to others, or without its devices while its pod has a node."""
    story = Story()
    story.claim("one", "gpu", users="a")
    story.pod("a", "one")
    story.claim("one", "net", users="a")
    story.claim("one", users="a")
    lost = story.view.find(CLAIMS, "x", "one")
    assert lost is not None
    story.write(CLAIMS, lost, kind="DELETED")

    assert story.found == [
        "the claim one was allocated to other devices",
        "the claim one lost its devices while a has a node",
        "the claim one of a was deleted",
    ]


@pytest.mark.parametrize("first_bound", ["ours", "other"])
@pytest.mark.parametrize("last", ["ours", "other"])
@pytest.mark.parametrize(("device", "second"), [("gpu", "gpu"), ("part-1", "part-2")])
def test_of_two_claims_the_one_allocated_last_is_wrong(
    first_bound: str, last: str, device: str, second: str
) -> None:
    """In whichever order they are bound; a scheduler that was said not to look at others is only counted."""
    story = Story("other")
    pods = {
        "a": story.waiting("a", "one", scheduler="other" if last == "ours" else "ours"),
        "b": story.waiting("b", "two", scheduler=last),
    }
    story.claim("one", device, users="a")
    story.claim("two", second, users="b")
    for pod in sorted(pods.values(), key=lambda each: each["spec"]["schedulerName"] != first_bound):
        story.bind(pod)
    for at in (0.0, CONTESTED_S + 1):
        story.write("nodes", {"metadata": {"name": "n"}}, at)

    assert bool(story.found) is (last == "ours")
    assert bool(story.promise.unfinished()) is (last == "ours")
    assert bool(story.promise.theirs) is (last == "other")
    assert story.promise.bound == {"ours": 1, "other": 1}


def waiting(story: Story, **asked: Any) -> None:
    """A node with room, and a pod of ours that waits for its claim."""
    status = {"allocatable": {"cpu": "4", "pods": "9"}, "conditions": [{"type": "Ready", "status": "True"}]}
    story.write("nodes", {"metadata": {"name": "n"}, "spec": {}, "status": {}})
    story.write("nodes", {"metadata": {"name": "free"}, "spec": {}, "status": status})
    pool = {"name": "q", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "free", "pool": pool, "devices": [{"name": "gpu"}]}
    story.write(SLICES, {"metadata": {"name": "near"}, "spec": spec})
    request = {"name": "r", "exactly": {"allocationMode": "ExactCount", "count": 1, **asked}}
    meta = {"name": "wants", "namespace": "x", "uid": "wants"}
    story.write(CLAIMS, {"metadata": meta, "spec": {"devices": {"requests": [request]}}})
    pod = {"schedulerName": "ours", "resourceClaims": [{"name": "gpu", "resourceClaimName": "wants"}]}
    pod["containers"] = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    story.write("pods", {"metadata": {**meta, "name": "a"}, "spec": pod, "status": {}}, kind="ADDED")


def test_a_pod_that_waits_though_devices_are_free_is_found() -> None:
    """Only where it is certain that it would get them."""
    story = Story()
    waiting(story)

    assert story.promise.forgotten("ours") == ["a is not placed, though free has devices"]
    assert story.promise.forgotten("theirs") == []


@pytest.mark.parametrize("asked", [{"count": 2}, {"selectors": ["..."]}, {"allocationMode": "All"}])
def test_a_pod_whose_claim_may_get_nothing_is_let_wait(asked: Obj) -> None:
    """Too few devices, or what is not evaluated here."""
    story = Story()
    waiting(story, **asked)

    assert story.promise.forgotten("ours") == []


@pytest.mark.parametrize(
    ("devices", "status", "kind"),
    [
        pytest.param({"requests": []}, {}, "MODIFIED", id="wants-nothing"),
        pytest.param({"constraints": ["..."]}, {}, "MODIFIED", id="with-constraints"),
        pytest.param({}, {"allocation": {"devices": {}}}, "MODIFIED", id="allocated"),
        pytest.param({}, {}, "DELETED", id="gone"),
    ],
)
def test_a_pod_whose_claim_wants_no_plain_devices_is_let_wait(devices: Obj, status: Obj, kind: str) -> None:
    """It has them, cannot have any, or wants what is not evaluated here."""
    story = Story()
    waiting(story)
    claim = story.view.find(CLAIMS, "x", "wants")
    assert claim is not None
    spec = {"devices": {**claim["spec"]["devices"], **devices}}
    story.write(CLAIMS, {**claim, "spec": spec, "status": status}, kind=kind)

    assert story.promise.forgotten("ours") == []


def test_a_pod_without_claims_is_not_asked_about() -> None:
    """Whether it waits for too long is judged elsewhere."""
    story = Story()
    waiting(story)
    pod = story.view.find("pods", "x", "a")
    assert pod is not None
    story.write("pods", {**pod, "spec": {**pod["spec"], "resourceClaims": []}})

    assert story.promise.forgotten("ours") == []


@pytest.mark.parametrize(
    ("devices", "namespace", "is_kept"),
    [
        pytest.param(["gpu"], "", True, id="its-pod-is-gone"),
        pytest.param(["gpu"], "x", False, id="a-pod-names-it"),
        pytest.param(["gpu"], "y", True, id="a-pod-names-another"),
        pytest.param([], "", False, id="without-devices"),
    ],
)
def test_a_claim_that_keeps_its_devices_for_no_pod_is_found(
    devices: list[str], namespace: str, is_kept: bool
) -> None:
    """A pod of its namespace names it, or it has none."""
    story = Story()
    story.claim("one", *devices, users="a")
    if namespace:
        wants = [{"name": "one", "resourceClaimName": "one"}]
        meta = {"name": "a", "namespace": namespace, "uid": "a"}
        story.write("pods", {"metadata": meta, "spec": {"resourceClaims": wants}})

    said = ["the claim one has devices at the end, and no pod names it"] if is_kept else []
    assert story.promise.forgotten("ours") == said


def test_a_pod_that_is_made_with_a_node_is_no_binding() -> None:
    """A user names a node and a claim that is absent: no scheduler was asked, and none is at fault."""
    story = Story()
    pod = {"metadata": {"name": "a", "namespace": "x", "uid": "a"}}
    wants = [{"name": "gone", "resourceClaimName": "gone"}]
    story.write("pods", {**pod, "spec": {"resourceClaims": wants, "nodeName": "nowhere"}}, kind="ADDED")

    assert story.found == []
    assert story.promise.unfinished() == []


OURS = Author("red")
BROKEN, WORN = {"key": "broken", "effect": "NoExecute"}, {"key": "worn", "effect": "None"}
ONE = {"name": "r", "exactly": {"allocationMode": "ExactCount", "count": 1}}
ALL = {"name": "r", "exactly": {"allocationMode": "All"}}
EITHER = {"name": "r", "firstAvailable": [{"name": "two", "count": 2}, {"name": "one"}]}
TOLERANT = {"name": "r", "exactly": {"tolerations": [{"key": "broken", "operator": "Exists"}]}}


def allocated(story: Story, asked: Obj, *given: str, author: Author = OURS, at: float = 100.0) -> list[str]:
    """What is said of a claim for these requests that gets devices by these names, from the first on."""
    names = ("gpu", "net", "part-1")
    results = [
        {"request": request, "driver": "d", "pool": "p", "device": device}
        for request, device in zip(given, names, strict=False)
    ]
    spec = {"devices": {"requests": [asked]}}
    before: Obj = {"metadata": {"name": "c", "namespace": "x", "uid": "c"}, "spec": spec}
    story.write(CLAIMS, before, at)
    story.write(
        CLAIMS, {**before, "status": {"allocation": {"devices": {"results": results}}}}, at, author=author
    )
    return story.found


@pytest.mark.parametrize(
    ("asked", "given", "problem"),
    [
        pytest.param(ONE, ["r"], "", id="one"),
        pytest.param(ONE, ["r", "r"], "2 devices for r, which asks for 1", id="one-too-many"),
        pytest.param(ONE, ["r", "s"], "devices for s, which it does not ask for", id="of-no-request"),
        pytest.param(ALL, ["r", "r"], "", id="all"),
        pytest.param(EITHER, ["r/two", "r/two"], "", id="the-first"),
        pytest.param(EITHER, ["r/one"], "", id="another-one"),
        pytest.param(EITHER, ["r/two"], "1 devices for r/two, which asks for 2", id="too-few"),
        pytest.param(EITHER, ["r/two", "r/two", "r/one"], "devices for 2 alternatives of r", id="both"),
    ],
)
def test_a_claim_gets_what_it_asks_for(asked: Obj, given: list[str], problem: str) -> None:
    """One alternative of each request, with as many devices as that says."""
    assert allocated(Story(), asked, *given) == ([f"the claim c was allocated {problem}"] if problem else [])


def test_a_request_that_gets_nothing_is_found() -> None:
    said = ["devices for other, which it does not ask for", "devices for 0 alternatives of r"]

    assert allocated(Story(), ONE, "other") == [f"the claim c was allocated {each}" for each in said]


@pytest.mark.parametrize(
    ("taint", "device", "asked", "tainted_at", "author", "is_wrong"),
    [
        pytest.param(BROKEN, "gpu", ONE, 0.0, OURS, True, id="for-long"),
        pytest.param(BROKEN, "gpu", ONE, 80.0, OURS, False, id="lately"),
        pytest.param(BROKEN, "gpu", TOLERANT, 0.0, OURS, False, id="tolerated"),
        pytest.param(WORN, "gpu", ONE, 0.0, OURS, False, id="that-informs"),
        pytest.param(BROKEN, "gpu", ONE, 0.0, UNKNOWN, False, id="by-somebody-else"),
        pytest.param(BROKEN, "net", ONE, 0.0, OURS, False, id="of-another-device"),
    ],
)
def test_no_device_is_given_out_whose_taint_is_not_tolerated(
    taint: Obj, device: str, asked: Obj, tainted_at: float, author: Author, is_wrong: bool
) -> None:
    """What a watch may not show yet does not count, nor does what others allocate."""
    story = Story()
    slice_ = story.view.find(SLICES, "", "devices")
    assert slice_ is not None
    devices = [
        {**each, "taints": [taint]} if each["name"] == device else each for each in slice_["spec"]["devices"]
    ]
    story.write(SLICES, {**slice_, "spec": {**slice_["spec"], "devices": devices}}, tainted_at)

    said = [f"the claim c was allocated d/p/gpu, whose taint {taint['key']} it does not tolerate"]
    assert allocated(story, asked, "r", author=author) == (said if is_wrong else [])
