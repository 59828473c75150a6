"""A Chromium without a window, from Debian's packages chromium and chromium-driver."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="pages were not looked at in a browser, for chromium and chromium-driver are not installed; "
    "what they say was compared without one",
)


#: Impacts of axe that a page must not have, and its rules whose answers depend on the scheme of colours.
SERIOUS, OF_COLOURS = {"serious", "critical"}, ("color-contrast",)
#: Its rules whose answers depend on the width of the window.
OF_WIDTH = ("color-contrast", "scrollable-region-focusable")

#: Calls back with rule, impact and element of each violation that axe finds.
JUDGE = """
const [options, done] = arguments;
axe.run(options).then(({violations}) =>
  done(violations.map(each => [each.id, each.impact, each.nodes[0].html])));
"""

#: What a browser logs: what the console says, and what is asked for.
LOGS = ("browser", "performance")

#: Without a window, and one process for all pages: Chromium would start one, and a spare one, at each load.
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--process-per-site",
    "--renderer-process-limit=1",
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache,IsolateOrigins,site-per-process",
)

#: The browsers of this process, and those that no test has: a start takes as long as a test.
_STARTED: list[webdriver.Chrome] = []
_IDLE: list[webdriver.Chrome] = []


@contextmanager
def a_browser(*, width: int = 1200, height: int = 900) -> Iterator[webdriver.Chrome]:
    """A browser with an empty page, whose log of the console is empty; tests have it one after the other."""
    driver = _IDLE.pop() if _IDLE else _started()
    resized(driver, width, height)
    colour(driver, dark=False)
    yield driver
    # A test that fails keeps it, in whatever state it is in.
    driver.get("about:blank")
    driver.delete_all_cookies()
    for kind in LOGS:
        logged(driver, kind)
    _IDLE.append(driver)


def _started() -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(LOGS, "ALL"))
    driver = webdriver.Chrome(options, Service(DRIVER))
    driver.set_script_timeout(240)  # a busy machine is slow; the limit of a test ends what never ends
    _STARTED.append(driver)
    return driver


def end_browsers() -> None:
    """End the browsers of this process."""
    _IDLE.clear()
    while _STARTED:
        _STARTED.pop().quit()


def resized(driver: webdriver.Chrome, width: int, height: int = 900) -> None:
    """Give the window another size; a page that is open follows."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def colour(driver: webdriver.Chrome, *, dark: bool) -> None:
    """Let the browser prefer a scheme of colours; a page that is open follows."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def opened(driver: webdriver.Chrome, page: Path | str) -> webdriver.Chrome:
    """The browser with a page of a file, or at an address, that is loaded and whose scripts have run.

    On a busy machine one `get` of fifty returns while the page is still read.
    """
    driver.get(page if isinstance(page, str) else page.as_uri())
    WebDriverWait(driver, 60, poll_frequency=0.05).until(
        lambda _: driver.execute_script("return document.readyState === 'complete'")
    )
    return driver


def violations(driver: webdriver.Chrome, rules: Sequence[str] = ()) -> list[tuple[str, str]]:
    """What axe finds that a page must not have, by all its rules or by these: rule and element."""
    if not driver.execute_script("return 'axe' in window"):
        driver.execute_script(Axe().axe_script)
    options = {"runOnly": [*rules]} if rules else {}
    found = driver.execute_async_script(JUDGE, options)
    return [(rule, html) for rule, impact, html in found if impact in SERIOUS]


def assert_nothing_serious(driver: webdriver.Chrome) -> None:
    """In both schemes, at the width of a desk and of a phone, where nothing but tables scrolls sideways.

    All rules are asked once, and again those whose answers depend on colours or on the width.
    """
    for width, schemes in ((1200, ((False, ()), (True, OF_COLOURS))), (320, ((True, OF_WIDTH),))):
        resized(driver, width)
        for dark, rules in schemes:
            colour(driver, dark=dark)
            assert violations(driver, rules) == []
            paper = driver.find_element("tag name", "body").value_of_css_property("background-color")
            assert paper.startswith("rgba(13," if dark else "rgba(255,")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width


def logged(driver: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    """What the browser has logged since the last time."""
    found: list[dict[str, Any]] = driver.get_log(kind)  # type: ignore[no-untyped-call] # Selenium types it half
    return found
