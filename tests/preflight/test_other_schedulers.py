"""Finding other schedulers, deschedulers and autoscalers, with certainty or likely."""

from typing import Any

import pytest

from plimsoll.ports.leases import Lease
from plimsoll.preflight.findings import Certainty, Finding, Level
from plimsoll.preflight.leases import Leases
from plimsoll.preflight.other_schedulers import ProgramActivity, judged_programs, seen_programs
from plimsoll.preflight.workloads import RunningWorkload, workload

NOW = 1_000.0
IDLE = ProgramActivity({}, (), ())
PLACING = ProgramActivity({"default-scheduler": "all"}, (), ())
MOVING = ProgramActivity({"mine": "placing"}, ("moving",), ("moving",))


def running(kind: str, image: str, *command: str, ready: int = 1) -> RunningWorkload:
    """A workload, or a static pod."""
    spec: dict[str, Any] = {"containers": [{"image": image, "command": list(command)}]}
    status: dict[str, Any] = {"readyReplicas": ready, "numberReady": ready}
    if kind == "Pod":
        status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    elif kind == "CronJob":
        spec = {"jobTemplate": {"spec": {"template": {"spec": spec}}}}
    else:
        spec = {"template": {"spec": spec}}
    return workload(kind, {"metadata": {"name": "it", "namespace": "ns"}, "spec": spec, "status": status})


def judged(
    doing: ProgramActivity,
    *workloads: RunningWorkload,
    leases: Leases | None = None,
    reporters: tuple[str, ...] = (),
) -> Finding:
    """The one finding."""
    (finding,) = judged_programs(tuple(seen_programs(workloads, leases or {}, reporters, NOW)), doing)
    return finding


@pytest.mark.parametrize(
    ("one", "subject", "certainty"),
    [
        (running("Pod", "registry.k8s.io/kube-scheduler:v1.36.2"), "kube-scheduler", Certainty.CERTAIN),
        (
            running("Pod", "own.example:5000/k8s/kube-scheduler-arm64@sha256:0"),
            "kube-scheduler",
            Certainty.CERTAIN,
        ),
        (running("Pod", "own/image", "/hyperkube", "kube-scheduler"), "kube-scheduler", Certainty.LIKELY),
        (running("Deployment", "volcanosh/vc-scheduler:v1.12"), "Volcano", Certainty.CERTAIN),
        (running("Deployment", "apache/yunikorn:scheduler-1.6"), "YuniKorn", Certainty.CERTAIN),
        (running("Deployment", "public.ecr.aws/karpenter/controller:1.5"), "Karpenter", Certainty.CERTAIN),
        (
            running("Deployment", "registry.k8s.io/autoscaling/cluster-autoscaler:v1"),
            "Cluster Autoscaler",
            Certainty.CERTAIN,
        ),
        (
            running("CronJob", "registry.k8s.io/descheduler/descheduler:v0.34"),
            "descheduler",
            Certainty.LIKELY,
        ),
    ],
)
def test_programs_are_known_by_image_or_command(
    one: RunningWorkload, subject: str, certainty: Certainty
) -> None:
    """A ready pod of the image is certain; a command alone, or a job from time to time, is likely."""
    finding = judged(IDLE, one)

    assert (finding.subject, finding.certainty, finding.level) == (subject, certainty, Level.OK)
    assert ("seems to be at work" in finding.message) == (certainty is Certainty.LIKELY)


def test_names_that_only_look_alike() -> None:
    """A registry of the name, a longer name, a workload without ready pods."""
    finding = judged(
        MOVING,
        running("Deployment", "descheduler.example/web:1"),
        running("Deployment", "example/my-descheduler-ui:1"),
        running("Deployment", "registry.k8s.io/descheduler/descheduler:v1", ready=0),
    )

    assert (finding.subject, finding.level) == ("other schedulers", Level.OK)


def test_a_lease_that_is_renewed_shows_a_scheduler_out_of_sight() -> None:
    """On a managed control plane there is no pod of it."""
    leases = {("kube-system", "kube-scheduler"): Lease("cp-1_abc", 15, 0.0, NOW - 3)}

    finding = judged(IDLE, leases=leases)
    stale = judged(IDLE, leases={key: Lease("cp-1_abc", 15, 0.0, NOW - 60) for key in leases})

    assert finding.certainty is Certainty.CERTAIN
    assert "cp-1 renews the lease kube-system/kube-scheduler" in finding.message
    assert stale.subject == "other schedulers"


def test_events_show_a_descheduler() -> None:
    """Which may run anywhere."""
    finding = judged(MOVING, reporters=("sigs.k8s.io.descheduler",))

    assert (finding.subject, finding.level, finding.certainty) == (
        "descheduler",
        Level.WARNING,
        Certainty.CERTAIN,
    )
    assert "and policy moving too" in finding.message


def test_two_schedulers_of_one_name_are_an_error() -> None:
    """Both would place the same pods."""
    finding = judged(PLACING, running("Pod", "registry.k8s.io/kube-scheduler:v1"))

    assert finding.level is Level.ERROR
    assert "policy all" in finding.message
    assert "another schedulerName" in finding.remedy


def test_a_scheduler_of_other_pods_is_no_problem() -> None:
    """Though it fills the same nodes."""
    finding = judged(MOVING, running("Pod", "registry.k8s.io/kube-scheduler:v1"))

    assert finding.level is Level.OK
    assert "it fills the same nodes" in finding.message


def test_who_empties_nodes_meets_an_autoscaler() -> None:
    """A warning only where a policy consolidates."""
    karpenter = running("Deployment", "public.ecr.aws/karpenter/controller:1.5")

    assert judged(MOVING, karpenter).level is Level.WARNING
    assert judged(ProgramActivity({}, ("moving",), ()), karpenter).level is Level.OK


#: As each project's manifests and sources write them.
LEASES = {
    "kube-scheduler": "kube-scheduler",
    "koord-scheduler": "Koordinator",
    "descheduler": "descheduler",
    "koord-descheduler": "koord-descheduler",
    "karpenter-leader-election": "Karpenter",
    "cluster-autoscaler": "Cluster Autoscaler",
}
REPORTERS = {
    "default-scheduler": "kube-scheduler",
    "volcano": "Volcano",
    "yunikorn": "YuniKorn",
    "koord-scheduler": "Koordinator",
    "sigs.k8s.io.descheduler": "descheduler",
    "karpenter": "Karpenter",
    "cluster-autoscaler": "Cluster Autoscaler",
}


def test_each_program_is_seen_by_its_lease_and_by_its_events() -> None:
    """And no other by them."""
    held = Lease(holder="one_1", duration_s=15, acquired=NOW, renewed=NOW, transitions=0, metadata={})
    by_lease = {
        name: [each.program.name for each in seen_programs((), {("ns", name): held}, (), NOW)]
        for name in LEASES
    }
    by_events = {
        name: [each.program.name for each in seen_programs((), {}, (name,), NOW)] for name in REPORTERS
    }

    assert by_lease == {name: [program] for name, program in LEASES.items()}
    assert by_events == {name: [program] for name, program in REPORTERS.items()}
