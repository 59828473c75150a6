"""Judging the leader by Deployments and Leases."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.check.checks import _leads
from plimsoll.check.installations import installations
from plimsoll.check.leaders import judged_leases
from plimsoll.ports.leases import Lease
from plimsoll.preflight.findings import Level
from plimsoll.preflight.leases import lease_of
from plimsoll.preflight.workloads import workload
from plimsoll.version import __version__

NOW = 1_000_000.0
OURS = ("plimsoll", "plimsoll")


def deployment(
    name: str = "plimsoll", *args: str, ready: int = 1, tag: str = __version__, **metadata: Any
) -> dict[str, Any]:
    """A Deployment of the operator."""
    container = {"image": f"registry.example/plimsoll:{tag}", "args": ["run", *args]}
    return {
        "metadata": {"name": name, "namespace": "plimsoll", **metadata},
        "spec": {"template": {"spec": {"serviceAccountName": "plimsoll", "containers": [container]}}},
        "status": {"readyReplicas": ready},
    }


def held(holder: str = "plimsoll-abc_123", ago: float = 2.0) -> Lease:
    """A lease that was renewed some seconds ago."""
    return Lease(holder, 15, 0.0, NOW - ago)


def judged(
    leases: dict[tuple[str, str], Lease], *deployments: dict[str, Any]
) -> list[tuple[str, str, Level]]:
    """Subject, message and level of each finding."""
    found = installations([workload("Deployment", each) for each in deployments])
    return [(each.subject, each.message, each.level) for each in judged_leases(leases, found, NOW)]


def test_a_lease_that_is_renewed() -> None:
    """By whom, when, and of which version."""
    assert judged({OURS: held()}, deployment()) == [
        (
            "lease plimsoll/plimsoll",
            f"plimsoll-abc holds it and renewed it 2s ago, version {__version__}",
            Level.OK,
        )
    ]


@pytest.mark.parametrize(
    ("leases", "ready", "said"),
    [
        ({}, 1, "no operator leads: the lease of Deployment plimsoll/plimsoll does not exist"),
        ({OURS: Lease("", 1, 0.0, NOW)}, 1, "no operator leads: the lease was released"),
        (
            {OURS: held(ago=300)},
            0,
            "no operator leads: plimsoll-abc renewed the lease last 5m ago, by this machine's clock",
        ),
    ],
)
def test_no_operator_leads(leases: dict[tuple[str, str], Lease], ready: int, said: str) -> None:
    """An error, with where to look."""
    ((_, message, level),) = judged(leases, deployment(ready=ready))

    assert (message, level) == (said, Level.ERROR)


def test_another_version() -> None:
    """What this command compares with is not what the operator was built with."""
    ((_, message, level),) = judged({OURS: held()}, deployment(tag="v0.0.9"))

    assert level is Level.WARNING
    assert message.endswith(f"its version is 0.0.9, that of this command {__version__}")


def test_two_that_lead() -> None:
    """With different leases, neither knows of the other."""
    other = deployment(
        "second", "--leader-elect-resource-name=other", "--leader-elect-resource-namespace", "x"
    )

    *_, (subject, message, level) = judged({OURS: held(), ("x", "other"): held()}, deployment(), other)

    assert (subject, level) == ("leases", Level.ERROR)
    assert message.startswith("2 Plimsolls lead at the same time (plimsoll/plimsoll, x/other)")


@pytest.mark.parametrize(("names", "problems"), [(("", "red"), 0), (("red", "blue"), 0), (("red", "red"), 1)])
def test_two_that_lead_under_names_of_their_own(names: tuple[str, str], problems: int) -> None:
    """Each serves its own policies, unless both have one name."""
    first, second = (
        deployment(each, f"--leader-elect-resource-name={each}", f"--operator-name={name}")
        for each, name in zip(("one", "two"), names, strict=True)
    )
    leases = {("plimsoll", "one"): held(), ("plimsoll", "two"): held()}

    found = judged(leases, first, second)

    assert sum(level is Level.ERROR for _, _, level in found) == problems


@pytest.mark.parametrize("renewed", [(True, True), (True, False), (False, True), (False, False)])
def test_one_renewed_lease_of_several_is_a_leader(renewed: tuple[bool, ...]) -> None:
    """The lease of an installation that was left behind says nothing about the other."""
    others = ["--leader-elect-resource-name=other", "--leader-elect-resource-namespace", "x"]
    workloads = [workload("Deployment", each) for each in (deployment(), deployment("second", *others))]
    leases = {
        key: held(ago=2.0 if is_renewed else 1e5)
        for key, is_renewed in zip((OURS, ("x", "other")), renewed, strict=True)
    }
    survey: Any = SimpleNamespace(leases=leases, installed=installations(workloads), now=NOW)

    assert _leads(survey) is any(renewed)


@pytest.mark.parametrize("ready", [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_one_ready_operator_without_a_lease_is_a_leader(ready: tuple[int, ...]) -> None:
    """It takes part in no election, so it leads as soon as it runs."""
    flag = "--leader-elect=false"
    workloads = [
        workload("Deployment", deployment(name, flag, ready=each))
        for name, each in zip(("plimsoll", "second"), ready, strict=True)
    ]
    survey: Any = SimpleNamespace(leases={}, installed=installations(workloads), now=NOW)

    assert _leads(survey) is any(ready)


def test_an_operator_outside_of_the_cluster() -> None:
    """Its lease has our name; who holds it is a host."""
    assert judged({("kube-system", "plimsoll"): held("laptop_1")}) == [
        (
            "lease kube-system/plimsoll",
            "laptop holds it and renewed it 2s ago, of a version that is not known",
            Level.OK,
        )
    ]


def test_without_an_election() -> None:
    """One pod is fine, two are not."""
    ((_, _, one),) = judged({}, deployment("p", "--leader-elect=false"))
    ((_, message, two),) = judged({}, deployment("p", "--leader-elect=false", ready=2))

    assert (one, two) == (Level.OK, Level.ERROR)
    assert "all of its 2 ready pods decide" in message


def test_nothing_is_installed() -> None:
    """A warning: the check is also for an installation that is being prepared."""
    ((_, message, level),) = judged({}, {"metadata": {"name": "web"}, "spec": {}})

    assert message.startswith("no operator was found")
    assert level is Level.WARNING


def test_a_lease_as_the_server_has_it() -> None:
    """Times with microseconds; what is missing is empty."""
    moment = datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC)
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.600000Z"}

    assert lease_of({"spec": spec}).renewed == moment.timestamp()
    assert lease_of({}) == Lease("", 0, 0.0, 0.0)
