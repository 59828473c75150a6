"""Lets axe judge pages of the built site in Chromium: ``python -m website.judged build/site``.

A start page, a how-to, a field reference and search results, light and dark, at the width of a desk and of a
phone. Fails for each finding that axe calls serious or critical, for a page that scrolls sideways, and for a
question whose search leads astray. Where
Chromium is not installed it says so and passes. With a second argument the folder gets a picture of each.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlencode

from selenium.webdriver import Chrome

from web_pages.browser import (
    CHROMIUM,
    DRIVER,
    OF_COLOURS,
    a_browser,
    colour,
    end_browsers,
    resized,
    violations,
)

#: Pages by the name of their picture.
PAGES = {
    "start": "index.html",
    "how-to": "how-to/drain-nodes.html",
    "fields": "reference/kinds/rebalancingrule.html",  # the largest one takes axe minutes
    "search": "search.html?q=why+was+my+pod+moved",
}
#: What readers ask, and where the first result leads.
SOUGHT = {
    "why was my pod moved": "everyday-questions.html#why-was-my-pod-moved",
    "why is my pod pending": "everyday-questions.html#why-is-my-pod-pending",
    "prometheus queries": "rebalancing/prometheus.html",
    "what happens when the operator dies": "high-availability.html",
    "exclude a namespace": "everyday-questions.html#how-do-i-exclude-a-namespace",
    "exclude namespace": "everyday-questions.html",
    "does it work with karpenter": "rebalancing/autoscalers.html",
    "drain a node": "everyday-questions.html#what-if-i-drain-a-node",
    "at night": "everyday-questions.html",
    "uninstall": "install.html",
    "gpu": "devices.html",
}
#: Widths of a desk and a phone, in pixels.
WIDTHS = (1440, 390)
#: Seconds that a search gets on a busy machine.
PATIENCE_S = 120.0

#: Whether what a page fetches by itself is there: of a search, its results.
IS_THERE = """
const found = document.querySelector("#search-results");
const isOver = found && !found.textContent.trim().startsWith("Searching");
return !found || (isOver && Boolean(found.querySelector("ul.search li p")));
"""


def opened(driver: Chrome, address: str) -> None:
    """Open a page and wait for its content."""
    driver.get(address)
    until = time.monotonic() + PATIENCE_S
    while not driver.execute_script(IS_THERE):
        if time.monotonic() > until:
            raise SystemExit(f"{address} shows no results")
        time.sleep(0.2)


def findings(site: Path, pictures: Path | None = None, pages: Mapping[str, str] = PAGES) -> Iterator[str]:
    """A sentence for each thing of weight."""
    with a_browser() as driver:
        for name, path in pages.items():
            opened(driver, f"{site.resolve().as_uri()}/{path}")
            for width in WIDTHS:
                resized(driver, width)
                for is_dark in (False, True):
                    colour(driver, dark=is_dark)
                    where = f"{path} at {width} px, {'dark' if is_dark else 'light'}"
                    for rule, html in violations(driver, OF_COLOURS if is_dark else ()):
                        yield f"{where}: {rule}: {html[:160]}"
                    if pictures is not None:
                        file = pictures / f"{name}-{width}-{'dark' if is_dark else 'light'}.png"
                        driver.save_screenshot(str(file))
                if driver.execute_script("return document.documentElement.scrollWidth") > width:
                    yield f"{path} scrolls sideways at {width} px"


def astray(site: Path, sought: Mapping[str, str] = SOUGHT) -> Iterator[str]:
    """A sentence for each question whose first result is another page or section."""
    with a_browser() as driver:
        for question, target in sought.items():
            opened(driver, f"{site.resolve().as_uri()}/search.html?{urlencode({'q': question})}")
            first = driver.find_element("css selector", "#search-results li a").get_attribute("href") or ""
            if not first.startswith(f"{site.resolve().as_uri()}/{target}"):
                yield f"the search for {question!r} finds {first} first, instead of {target}"


def main(site: str, pictures: str = "") -> int:
    """Judge the pages; 1 for a finding."""
    if not (CHROMIUM and DRIVER):
        sys.stderr.write("axe did not judge the site, for chromium and chromium-driver are not installed\n")
        return 0
    try:
        found = [*astray(Path(site)), *findings(Path(site), Path(pictures) if pictures else None)]
    finally:
        end_browsers()
    for each in found:
        sys.stderr.write(f"{each}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
