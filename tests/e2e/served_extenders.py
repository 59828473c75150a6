"""The extenders of a test: programmed, named in a policy, and asked what they were asked."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from e2e.operator_process import END_S
from e2e.polls import eventually
from forked import Forked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.scene import Obj, Scene


@dataclass(frozen=True, slots=True)
class Served:
    """The process that serves extenders."""

    http: str
    https: str
    certificate: str

    @property
    def ca_data(self) -> str:
        """Its certificate, as a policy takes it."""
        return base64.b64encode(self.certificate.encode()).decode()


@contextmanager
def extenders_served(kubeconfig: Path | None = None) -> Iterator[Served]:
    """Start the process; it ends with the block. To bind, it needs a kubeconfig."""
    arguments = ["--kubeconfig", str(kubeconfig)] if kubeconfig is not None else []
    with TemporaryDirectory() as folder:
        said, errors = Path(folder, "said"), Path(folder, "errors")
        process = Forked("e2e.extender_server", *arguments, output=said, errors=errors)
        try:
            while not (line := said.read_text()).endswith("\n"):
                assert process.poll() is None, errors.read_text()
                time.sleep(0.01)
            yield Served(**json.loads(line))
        finally:
            process.kill()
            process.wait(END_S)


@dataclass(slots=True)
class Extender:
    """One extender of a scene."""

    served: Served
    name: str

    @property
    def url(self) -> str:
        """Its urlPrefix."""
        return f"{self.served.http}/{self.name}"

    @property
    def tls_url(self) -> str:
        """The same over HTTPS."""
        return f"{self.served.https}/{self.name}"

    async def does(self, **by_verb: Obj) -> None:
        """From now on it does so."""
        await asyncio.to_thread(_exchanged, f"{self.served.http}/program/{self.name}", by_verb)

    async def asked(self, verb: str) -> list[Obj]:
        """The bodies that were sent for a verb, oldest first."""
        log = await asyncio.to_thread(_exchanged, f"{self.served.http}/log/{self.name}")
        return [each["body"] for each in log if each["verb"] == verb]

    async def headers(self) -> list[dict[str, str]]:
        """The headers of each ask."""
        log = await asyncio.to_thread(_exchanged, f"{self.served.http}/log/{self.name}")
        return [each["headers"] for each in log]

    async def until_asked(self, verb: str, times: int = 1) -> list[Obj]:
        """Wait until it was asked so often; the bodies."""
        return await eventually(lambda: self.asked(verb), lambda bodies: len(bodies) >= times)


async def with_extenders(scene: Scene, *extenders: Obj, suffix: str = "extended") -> tuple[str, str]:
    """Serve a scheduler name of its own with these extenders; the name, and that of the policy."""
    scheduler = f"{scene.scheduler}-{suffix}"
    spec = {"scheduling": {"schedulerName": scheduler, "extenders": list(extenders)}}
    policy = await scene.policy(spec, suffix)
    await scene.until_condition(policy, "Ready", "True")
    return scheduler, policy


def _exchanged(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=20) as response:
        content = response.read()
    return json.loads(content) if content else None
