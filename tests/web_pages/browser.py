"""A Chromium without a window, from Debian's packages chromium and chromium-driver."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="pages were not looked at in a browser, for chromium and chromium-driver are not installed; "
    "what they say was compared without one",
)


@contextmanager
def a_browser(*, dark: bool = False, width: int = 1200, height: int = 900) -> Iterator[webdriver.Chrome]:
    """A browser that logs what the console says."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(DRIVER))
    try:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        yield driver
    finally:
        driver.quit()


def opened(driver: webdriver.Chrome, page: Path) -> webdriver.Chrome:
    """The browser with a page of a file."""
    driver.get(page.as_uri())
    return driver


def logged(driver: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    """What the browser has logged since the last time."""
    found: list[dict[str, Any]] = driver.get_log(kind)  # type: ignore[no-untyped-call] # Selenium types it half
    return found
