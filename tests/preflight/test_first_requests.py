"""The check makes its first requests: each way in which a server answers, and the account it reviews."""

from __future__ import annotations

import ssl
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from plimsoll.check.contact import contact, obstacle_of, proxy_of
from plimsoll.check.review import Choice, _accounts
from plimsoll.check.server import OLDEST, UNKNOWN, Contact, Obstacle, judged_contact, judged_version
from plimsoll.kube.session.errors import APIError, NotFound, Unauthorized, Unavailable
from plimsoll.preflight.findings import Level, Unread
from plimsoll.preflight.rights import Account, service_account

FORBIDDEN = Unauthorized("GET /version", 403, "Forbidden", "no")
VERSION: dict[str, Any] = {"gitVersion": "v1.35.1"}
ME = {"status": {"userInfo": {"username": "jane"}}}


def a_session(*answers: Any) -> Any:
    """A session that gives these answers, or raises them, in order."""
    left = [*answers]

    async def answer(*_: Any, **__: Any) -> Any:
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    return SimpleNamespace(
        object=answer, address="https://k", configuration=SimpleNamespace(proxy="http://u:p@proxy:1")
    )


def unavailable(cause: Exception | None) -> Unavailable:
    found = Unavailable("GET /version", message="nothing came")
    found.__cause__ = cause
    return found


KEY: Any = SimpleNamespace(host="h", port=1, ssl=None)
REACHED: dict[str, Any] = {"address": "https://k", "proxy": "http://proxy:1"}


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        pytest.param((VERSION, ME), {"version": "v1.35.1", "user": "jane"}, id="all well"),
        pytest.param((VERSION, {"status": None}), {"version": "v1.35.1"}, id="no name"),
        pytest.param((VERSION, NotFound("x", 404, "no")), {"version": "v1.35.1"}, id="no such review"),
        pytest.param(
            (VERSION, FORBIDDEN), {"version": "v1.35.1", "status": 403, "message": "no"}, id="no review"
        ),
        pytest.param((FORBIDDEN, ME), {"version": UNKNOWN, "user": "jane"}, id="no version"),
        pytest.param((Unauthorized("x", 401, ""),), {"status": 401, "message": ""}, id="wrong credentials"),
        pytest.param(
            (Unauthorized("x", 401, "Expired"),), {"status": 401, "message": "Expired"}, id="a reason alone"
        ),
        pytest.param(({},), {"message": "/version has no gitVersion"}, id="another server"),
        pytest.param(({"message": "a\n" + "b " * 99},), {"message": "a" + " b" * 49}, id="its message"),
        pytest.param(
            (Unavailable("x", 502, "bad gateway"),), {"status": 502, "message": "502 "}, id="a bad gateway"
        ),
        pytest.param(
            (unavailable(TimeoutError()),), {"obstacle": Obstacle.TIME, "message": "nothing came"}, id="late"
        ),
    ],
)
async def test_what_the_first_answers_say(answers: Any, found: dict[str, Any]) -> None:
    seen = await contact(a_session(*answers))

    assert seen.address == "https://k"
    assert seen.proxy == "http://proxy:1"
    for name, value in {"obstacle": None, "status": 0, "version": "", "user": "", **found}.items():
        got = getattr(seen, name)
        assert str(got).startswith(value) if name == "message" and value else got == value, name


@pytest.mark.parametrize(
    ("cause", "direct", "by_proxy"),
    [
        (aiohttp.ClientConnectorDNSError(KEY, OSError()), Obstacle.NAME, Obstacle.NAME),
        (aiohttp.ClientProxyConnectionError(KEY, OSError()), Obstacle.PROXY, Obstacle.PROXY),
        (ssl.SSLError(), Obstacle.TLS, Obstacle.TLS),
        (TimeoutError(), Obstacle.TIME, Obstacle.TIME),
        (OSError(), Obstacle.CONNECTION, Obstacle.PROXY),
        (None, Obstacle.CONNECTION, Obstacle.PROXY),
    ],
)
def test_what_stands_in_the_way(cause: Any, direct: Obstacle, by_proxy: Obstacle) -> None:
    assert obstacle_of(unavailable(cause), "") is direct
    assert obstacle_of(unavailable(cause), "http://proxy:1") is by_proxy


@pytest.mark.parametrize(
    ("configured", "environment", "proxy"),
    [
        ("http://u:p@one:1", {}, "http://one:1"),
        ("", {"https_proxy": "http://u:p@two:2"}, "http://two:2"),
        ("", {"https_proxy": "http://two:2", "no_proxy": "k"}, ""),
        ("one:1", {"no_proxy": "k"}, "one:1"),
        ("", {}, ""),
    ],
)
def test_the_proxy_is_shown_without_credentials(
    configured: str, environment: dict[str, str], proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    session: Any = SimpleNamespace(address="https://k", configuration=SimpleNamespace(proxy=configured))
    assert proxy_of(session) == proxy


@pytest.mark.parametrize(
    ("seen", "levels", "said"),
    [
        (Contact(version="v1.35.0", user="jane", **REACHED), "OK OK OK", "as jane"),
        (Contact(version="v1.35.0", **REACHED), "OK OK OK", "does not say whose they are"),
        (Contact(version="v1.35.0", status=403, **REACHED), "OK WARNING OK", "you may not create"),
        (Contact(version="v1.35.0", user="system:anonymous", **REACHED), "OK ERROR OK", "no credentials"),
        (Contact(status=401, message="expired", **REACHED), "ERROR", "does not accept the credentials: exp"),
        (Contact(status=401, version="v1.35.0", **REACHED), "ERROR", "credentials: Unauthorized"),
        (Contact(message="a page", **REACHED), "ERROR", "not as a Kubernetes API server does: a page"),
        (Contact(obstacle=Obstacle.TIME, message="late", **REACHED), "ERROR", "proxy http://proxy:1: late"),
    ],
)
def test_what_is_said_about_the_server(seen: Contact, levels: str, said: str) -> None:
    found = [*judged_contact(seen)]

    assert " ".join(each.level.name for each in found) == levels
    assert any(said in each.message for each in found)


@pytest.mark.parametrize(
    ("version", "level", "said"),
    [
        (UNKNOWN, Level.WARNING, "Kubernetes 1.33 and newer"),
        ("latest", Level.WARNING, 'its version "latest" cannot be read; 1.33 and newer'),
        ("v1.32.9", Level.WARNING, "is older than 1.33"),
        ("v1.33.0-eks", Level.OK, "is supported"),
        ("1.37", Level.OK, "newer than 1.36"),
        ("v2.0", Level.OK, "newer than 1.36"),
        ("v1.36.9", Level.OK, "is supported"),
    ],
)
def test_what_is_said_about_the_version(version: str, level: Level, said: str) -> None:
    finding = judged_version(version)

    assert OLDEST == (1, 33)
    assert finding.level is level
    assert said in finding.message
    assert ("newer than" in finding.message) is ("newer than" in said)


def an_installation(account: str, lease: str, operator: str = "") -> Any:
    workload = SimpleNamespace(namespace="ops", account=account, text=f"Deployment ops/{account}")
    return SimpleNamespace(
        lease=("ops", lease), account=("ops", account), workload=workload, elects=True, operator=operator
    )


def a_survey(**read: Any) -> Any:
    return SimpleNamespace(**{"leases": {}, "installed": (), **read})


LEASE = SimpleNamespace(holder="plimsoll-1_x")
HELD = {("ops", "plimsoll"): LEASE}
TWO = an_installation("one", "other", "red"), an_installation("two", "plimsoll")
SAME = an_installation("two", "other", "red"), an_installation("two", "plimsoll")
UNREAD = Unread(("get", "", "x"), "", 403, "no")  # type: ignore[arg-type] # only that it is there counts
CHOSEN, SELF, ANY = (
    Choice(account=("a", "b"), is_self=False),
    Choice(account=None, is_self=True),
    Choice(account=None, is_self=False),
)


@pytest.mark.parametrize(
    ("survey", "choice", "answers", "accounts"),
    [
        (a_survey(), SELF, (), [Account("jane", "", "those of this user, --self")]),
        (a_survey(), CHOSEN, (), [service_account("a", "b", "--as-service-account")]),
        (
            a_survey(leases=HELD, installed=TWO),
            ANY,
            (),
            [
                service_account("ops", "one", "the account of Deployment ops/one"),
                service_account("ops", "two", "the account of Deployment ops/two"),
            ],
        ),
        (
            a_survey(leases=HELD, installed=SAME),
            ANY,
            (),
            [service_account("ops", "two", "the account of Deployment ops/two and Deployment ops/two")],
        ),
        (
            a_survey(leases=UNREAD, installed=(an_installation("one", "other"),)),
            ANY,
            (),
            [service_account("ops", "one", "the account of Deployment ops/one")],
        ),
        (
            a_survey(leases=HELD),
            ANY,
            ({"spec": {"serviceAccountName": "runner"}},),
            [service_account("ops", "runner", "the account of pod ops/plimsoll-1")],
        ),
        (
            a_survey(leases=HELD),
            ANY,
            ({},),
            [service_account("ops", "default", "the account of pod ops/plimsoll-1")],
        ),
        (a_survey(leases=HELD), ANY, (APIError("x", 404, "gone"),), []),
        (
            a_survey(leases=HELD | {("b", "plimsoll"): LEASE}),
            ANY,
            (APIError("x", 404, "gone"), {}),
            [service_account("ops", "default", "the account of pod ops/plimsoll-1")],
        ),
        (a_survey(), ANY, (), []),
    ],
)
async def test_whose_rights_are_asked(survey: Any, choice: Choice, answers: Any, accounts: Any) -> None:
    """What was chosen, the account of each installation, or that of the pod with the lease."""
    found = await _accounts(a_session(*answers), survey, choice, "jane")
    assert [each.account for each in found] == accounts


async def test_each_operator_is_asked_about_its_own_lease_and_policies() -> None:
    """One alone also about a lease that no Deployment names."""
    found = await _accounts(a_session(), a_survey(leases=HELD, installed=TWO), ANY, "jane")
    assert [(*each.leases, *(each.operators or ()), each.keeps_records) for each in found] == [
        (("ops", "other"), "red", False),
        (("ops", "plimsoll"), "", True),
    ]
    (alone,) = await _accounts(a_session(), a_survey(leases=HELD, installed=TWO[:1]), ANY, "jane")
    assert alone.leases == (("ops", "other"), ("ops", "plimsoll"))


async def test_the_operators_account_asks_for_itself_where_installations_cannot_be_read() -> None:
    user = "system:serviceaccount:ops:runner"
    (found,) = await _accounts(a_session(), a_survey(installed=UNREAD), ANY, user)
    assert found.account == service_account("ops", "runner", "the account that this runs as")
