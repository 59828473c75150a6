"""kopf's logins: each differs from those before, takes the present token, and is not repeated in a circle."""

from __future__ import annotations

from typing import Any

from kopf._cogs.structs.credentials import Vault
from kubernetes_asyncio import client

from plimsoll.app.kopf_handlers import KopfLogin
from plimsoll.testing.fakes import FakeClock


class FakeCredentials:
    """Credentials that a test replaces."""

    def __init__(self) -> None:
        self.present = "Bearer first"
        self.next = "Bearer first"

    async def authorization(self) -> str:
        """What to show."""
        return self.present

    async def refused(self, shown: str) -> bool:
        """Read them again."""
        self.present = self.next
        return shown != self.present


class FakeSession:
    """A connection to nowhere."""

    def __init__(self) -> None:
        self.address = "https://a"
        self.configuration = client.Configuration()
        self.credentials = FakeCredentials()


class ImpatientClock(FakeClock):
    """Sleeps take no time, and are noted."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[Any] = []

    async def sleep(self, seconds: float) -> None:
        """Go on."""
        self.slept.append(seconds)
        self.time += seconds


async def test_kopf_takes_each_login_also_with_the_token_that_was_refused() -> None:
    """One 401 of a good token: kopf's vault never takes again what it has seen to fail."""
    login, vault = KopfLogin(FakeSession(), ImpatientClock()), Vault()  # type: ignore[arg-type] # a fake has only what is used
    for _ in range(6):
        info = await login()
        await vault.populate({"connect": info})
        assert not vault.is_empty()
        (key, item) = vault.select()
        assert item.info is info
        vault._invalid[key] = [*vault._invalid[key][-2:], vault._current.pop(key)]


async def test_a_login_takes_the_present_token() -> None:
    """The old one was refused because it has ended."""
    session, clock = FakeSession(), ImpatientClock()
    login = KopfLogin(session, clock)  # type: ignore[arg-type] # a fake has only what is used
    assert (await login()).token == "first"
    session.credentials.next = "Bearer second"
    info = await login()

    assert (info.scheme, info.token) == ("Bearer", "second")
    assert clock.slept == []


async def test_logins_with_a_token_that_stays_refused_become_rare() -> None:
    """And soon again, once one was accepted for a while."""
    clock = ImpatientClock()
    login = KopfLogin(FakeSession(), clock)  # type: ignore[arg-type] # a fake has only what is used
    for _ in range(8):
        await login()
    assert clock.slept == [1, 2, 5, 10, 30, 30, 30]
    clock.time += 120
    await login()

    assert clock.slept[-1] == 1


async def test_users_with_a_password_are_shown_as_such() -> None:
    """Not as bearers."""
    session = FakeSession()
    session.credentials.present = "Basic YTpi"
    info = await KopfLogin(session, FakeClock())()  # type: ignore[arg-type] # a fake has only what is used

    assert info.as_http_headers() == {"Authorization": "Basic YTpi"}
