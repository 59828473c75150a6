"""Takes the screenshots of docs/pictures: ``python -m pictures.screenshots docs/pictures``.

A cluster of the development server is filled unevenly, a policy is applied, and Chromium looks at the report
of ``plimsoll plan`` and at the live page, in light and dark. Needs chromium and chromium-driver of Debian.
"""

import base64
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

PORT = 18_497

#: Width and height of a picture, and its quality as WebP.
WIDTH, HEIGHT, QUALITY = 1080, 760, 72

#: Before the picture of the live page: give it the token.
GIVE = "document.getElementById('token').value = arguments[0]; document.getElementById('ask').requestSubmit()"

SCENE = Path(__file__).with_name("scene.yaml")


@contextmanager
def running(*command: str) -> Iterator[None]:
    """A program of ours that ends with the block."""
    process = subprocess.Popen(  # noqa: S603 - ours
        [Path(sys.executable).parent / command[0], *command[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def shell(*command: str, folder: Path | None = None) -> None:
    """Run a command in a folder; exit codes 0 and 2 are well."""
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL, cwd=folder).returncode not in (0, 2):  # noqa: S603 - ours
        raise SystemExit(f"{command} failed")


@contextmanager
def browser(*, dark: bool) -> Iterator[webdriver.Chrome]:
    """A Chromium without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    try:
        yield driver
    finally:
        driver.quit()


def take(driver: webdriver.Chrome, file: Path) -> None:
    """Write what the browser shows."""
    how = {"format": "webp", "quality": QUALITY}
    file.write_bytes(base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", how)["data"]))


def main(folder: Path) -> None:
    """Make the scene, and take all pictures."""
    with tempfile.TemporaryDirectory() as scratch:
        kubeconfig, report = Path(scratch, "kubeconfig"), Path(scratch, "plan.html")
        os.environ["KUBECONFIG"] = str(kubeconfig)
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        with running("roadstead", "--kubeconfig", str(kubeconfig), "--nodes", "16"):
            while not kubeconfig.exists():
                time.sleep(0.2)
            shell("bash", "-c", "plimsoll crds | kubectl apply --server-side -f -")
            crds = ("crd", "-l", "app.kubernetes.io/part-of=plimsoll")
            shell("kubectl", "wait", "--for=condition=Established", "--timeout=60s", *crds)
            shell("kubectl", "apply", "-f", str(SCENE))
            served = ("--bind-address", "127.0.0.1", "--metrics-port", str(PORT), "--health-port", "0")
            with running("plimsoll", "run", *served, "--ui", "true"):
                shell("kubectl", "rollout", "status", "deployment", "-n", "shop", "--timeout=180s")
                taint = "kubectl taint node node-0003 node-0007 maintenance=true:NoSchedule"
                shell("bash", "-c", taint)
                time.sleep(15)
                shell("plimsoll", "plan", "--report", report.name, folder=report.parent)
                token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
                with browser(dark=False) as driver:
                    driver.get(report.as_uri())
                    time.sleep(1)
                    take(driver, folder / "report.webp")
                with browser(dark=True) as driver:
                    driver.get(f"http://127.0.0.1:{PORT}/ui")
                    driver.execute_script(GIVE, token)
                    time.sleep(6)
                    take(driver, folder / "live-page.webp")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
