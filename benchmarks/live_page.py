"""Measures what the live page costs the operator in a large cluster: without it, unseen, and seen.

    PYTHONPATH=tests python benchmarks/live_page.py [--size 5000x100000] [--seconds 30] [--rounds 3]

``synthetic_cluster.py`` serves the cluster, and ``plimsoll run`` runs as users run it, first without and then
with ``--ui true``. CPU seconds a second by /proc, of the whole process: idle without the page; idle with the
page that no browser has open; with viewers, each reading the stream as a browser does and asking again when
it ends; and after they have left. Rounds alternate, and the median is printed with the range. At the end
Chromium opens the page, and the milliseconds from the start of its load until its first line, policies, moves
and pending pods are painted, and until all nodes are, are printed, by the browser's clock.
"""

from __future__ import annotations

import argparse
import http.client
import os
import platform
import signal
import statistics
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from child_processes import free_port
from output import append
from scale import SERVER, SyntheticServer, Weighed, wait_for, weighed
from selenium.webdriver.support.ui import WebDriverWait

from web_pages.browser import a_browser, end_browsers, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver.remote.webdriver import WebDriver

#: Seconds of rest before each measurement.
REST_S = 5.0
#: Signs in, and notes when the first line says how many pods are placed, and when zones of nodes are there.
SHOWN = """
sessionStorage.setItem('token', '%s');
window.shownMs = {};
document.addEventListener('DOMContentLoaded', () => {
  const noted = (id, is_there) => new MutationObserver((_, observer) => {
    if (!is_there(document.getElementById(id))) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.shownMs[id] = performance.now(); }));
  }).observe(document.getElementById(id), {childList: true, characterData: true, subtree: true});
  noted('status', (line) => line.textContent.includes('placed'));
  noted('zones', (zones) => zones.textContent.includes('node'));
});
"""


class Viewer(threading.Thread):
    """Reads the stream as the page does, until it is ended.

    Attributes:
        received: Bytes so far.
        views: Events so far.
    """

    def __init__(self, port: int, token: str) -> None:
        super().__init__(daemon=True)
        self._port, self._token = port, token
        self._is_over = threading.Event()
        self.received = self.views = 0

    def run(self) -> None:
        """Ask again whenever the stream has ended."""
        last = ""
        while not self._is_over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
            headers = {"Authorization": f"Bearer {self._token}", "Last-Event-ID": last}
            connection.request("GET", "/explain/live", headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise SystemExit(f"{answer.status}: {answer.read().decode()}")
            while not self._is_over.is_set() and (line := answer.readline()):
                self.received += len(line)
                if line.startswith(b"id: "):
                    last = line[4:].decode().strip()
                self.views += line.startswith(b"data: ")
            connection.close()

    def end(self) -> None:
        """Leave, as a browser whose tab is closed."""
        self._is_over.set()
        self.join()


def spent(operator: Weighed, seconds: float) -> float:
    """CPU seconds a second."""
    time.sleep(REST_S)
    operator.check()
    cpu_s, at = operator.cpu_s(), time.monotonic()
    time.sleep(seconds)
    return (operator.cpu_s() - cpu_s) / (time.monotonic() - at)


def first_views(address: str, token: str, times: int) -> list[dict[str, float]]:
    """Milliseconds from the start of each load of the page until its first line and its nodes are painted."""
    found = []
    with a_browser() as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SHOWN % token})
        for _ in range(times):
            opened(driver, address)
            WebDriverWait(driver, 60).until(lambda each: len(moments(each)) == 2)
            found.append(moments(driver))
    end_browsers()
    return found


def moments(driver: WebDriver) -> dict[str, float]:
    """When the first line and the nodes were painted, as far as they are."""
    found: dict[str, float] = driver.execute_script("return window.shownMs")
    return found


@contextmanager
def operating(kubeconfig: Path, folder: Path, port: int, *, page: bool) -> Iterator[Weighed]:
    """The operator, when it has placed the first pods."""
    command = ("-m", "plimsoll", "run", "--kubeconfig", str(kubeconfig), "--bind-address", "127.0.0.1")
    ports = ("--metrics-port", str(port), "--health-port", "0", "--log-format", "text")
    more = ("--ui", "true") if page else ()
    with weighed(folder / f"operator-{page}.log", sys.executable, *command, *ports, *more) as operator:
        until = time.monotonic() + 300
        while "leading" not in operator.log.read_text(encoding="utf-8"):
            operator.check()
            if time.monotonic() > until:
                raise SystemExit("the operator does not lead")
            time.sleep(0.2)
        time.sleep(20)  # the first run, and the pods that wait
        yield operator


def main() -> None:
    """Read the command line, measure, print."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--size", default="5000x100000", help="nodes x pods")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--viewers", type=int, default=1)
    parser.add_argument(
        "--rate", type=int, default=0, choices=(0, 100, 500, 1000), help="pod events a second"
    )
    parser.add_argument("--loads", type=int, default=10, help="of the page in Chromium")
    parser.add_argument("--output", type=Path, help="append the figures as a line of JSON")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all processes end with this one
    nodes, _, pods = chosen.size.partition("x")
    found: dict[str, list[float]] = {"without": [], "unseen": [], "seen": [], "afterwards": []}
    a_view = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        file, port = folder / "cluster.kubeconfig", free_port()
        size = ("--nodes", nodes, "--pods", pods)
        with weighed(folder / "server.log", sys.executable, str(SERVER), str(file), *size) as server:
            wait_for((server,), file, 600)
            token = yaml.safe_load(file.read_text(encoding="utf-8"))["users"][0]["user"]["token"]
            if chosen.rate:
                SyntheticServer(file).do(f"events/{chosen.rate}")
            with operating(file, folder, port, page=False) as operator:
                found["without"] = [spent(operator, chosen.seconds) for _ in range(chosen.rounds)]
            with operating(file, folder, port, page=True) as operator:
                for _ in range(chosen.rounds):
                    found["unseen"].append(spent(operator, chosen.seconds))
                    viewers = [Viewer(port, token) for _ in range(chosen.viewers)]
                    for each in viewers:
                        each.start()
                    found["seen"].append(spent(operator, chosen.seconds))
                    for each in viewers:
                        each.end()
                    a_view = viewers[0].received / max(1, viewers[0].views) / 1024
                    found["afterwards"].append(spent(operator, chosen.seconds))
                loads = first_views(f"http://127.0.0.1:{port}/ui", token, chosen.loads)
    for name, shares in found.items():
        middle = statistics.median(shares)
        print(f"{name:>10}: {middle:.4f} CPU s/s ({min(shares):.4f} to {max(shares):.4f})", flush=True)
    print(
        f"{chosen.size}, {chosen.viewers} viewers, {chosen.rate} events/s, {a_view:.0f} KiB a view on average"
    )
    for name, what in (("status", "what people read first is"), ("zones", "all nodes are")):
        took = [each[name] for each in loads]
        print(f"{statistics.median(took):.0f} ms until {what} shown ({min(took):.0f} to {max(took):.0f})")
    print(f"{os.cpu_count()} CPUs, Python {platform.python_version()}, load {os.getloadavg()[0]:.0f}")
    middles = {name: statistics.median(shares) for name, shares in found.items()}
    append(chosen.output, size=chosen.size, viewers=chosen.viewers, rate=chosen.rate, **middles)


if __name__ == "__main__":
    main()
