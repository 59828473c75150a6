"""Renders a report from a template, with embedded style and script."""

from collections.abc import Mapping
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from plimsoll.pages.page_parts import STYLE, TILES, asset, content_policy
from plimsoll.version import __version__


def rendered(template: str, content: Mapping[str, object]) -> str:
    """Render a page in one HTML file, with its content policy in its head.

    Args:
        template: Name of the template in ``plimsoll/web_pages/templates``.
        content: Its content; text is escaped.
    """
    script = (resources.files(__package__) / "templates/report.js").read_text("utf-8") + asset(TILES)
    own = {"version": __version__, "policy": content_policy(asset(STYLE), script), "script": script}
    return _environment().get_template(template).render(**own, style=asset(STYLE), **content)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("plimsoll.web_pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
