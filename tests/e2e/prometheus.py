"""The real Prometheus, in a process of its own on loopback, for one test."""

from __future__ import annotations

import asyncio
import json
import subprocess
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from deploy.tools import tool
from e2e.operator_process import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: How often it scrapes; as often as a short story needs.
INTERVAL = "500ms"
END_S = 60.0


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that runs."""

    port: int
    targets: Path

    def scrape(self, port: int) -> None:
        """Scrape what listens on this port of loopback from now on."""
        found = [{"targets": [f"127.0.0.1:{port}"], "labels": {"namespace": "plimsoll"}}]
        self.targets.write_text(json.dumps(found), encoding="utf-8")

    async def ask(self, path: str, **query: str) -> Any:
        """What its API answers; the sentence when it refuses."""
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(query)}"
        return await asyncio.to_thread(_answer, url)

    async def values(self, expression: str) -> list[float]:
        """What an expression comes to now, NaN left out."""
        answer = await self.ask("/api/v1/query", query=expression)
        assert answer["status"] == "success", (expression, answer)
        result = answer["data"]["result"]
        if answer["data"]["resultType"] == "scalar":
            return [float(result[1])]
        return [value for each in result if (value := float(each["value"][1])) == value]

    async def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            await asyncio.to_thread(_read, f"http://127.0.0.1:{self.port}/-/ready")
        except OSError:
            return False
        return True


@contextmanager
def prometheus(folder: Path, rules: dict[str, Any]) -> Iterator[Prometheus]:
    """Start one with rules; it ends with the block."""
    targets, port = folder / "targets.json", free_port()
    targets.write_text("[]", encoding="utf-8")
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    settings = {
        "global": {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL, "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {
                "job_name": "plimsoll",
                "file_sd_configs": [{"files": [targets.name], "refresh_interval": "1s"}],
            }
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    command = [tool("prometheus"), f"--config.file={folder / 'prometheus.yaml'}", "--log.level=warn"]
    command += [f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield Prometheus(port, targets)
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as response:
        content: bytes = response.read()
    return content


def _answer(url: str) -> Any:
    try:
        return json.loads(_read(url))
    except urllib.error.HTTPError as exc:
        return json.loads(exc.read())
