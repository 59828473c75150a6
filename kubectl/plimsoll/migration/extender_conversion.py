"""Converts extenders of a KubeSchedulerConfiguration to ``spec.scheduling.extenders``."""

from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.api.schema.fields import duration_s
from plimsoll.api.v1alpha1.extender import LONGEST_TIMEOUT_S
from plimsoll.framework import ConfigurationError
from plimsoll.migration.documents import Path
from plimsoll.migration.report import Note, carried, differs, dropped, path_text

SAME = (
    "urlPrefix",
    "filterVerb",
    "prioritizeVerb",
    "preemptVerb",
    "bindVerb",
    "weight",
    "nodeCacheCapable",
    "managedResources",
    "ignorable",
)

#: Files on the scheduler's machine, with the field that has their content in a policy.
FILES = {"caFile": "caData", "certFile": "certData", "keyFile": "keyData"}


def extender_spec(given: Mapping[str, Any], at: Path, *, keep: bool) -> tuple[dict[str, Any], list[Note]]:
    """Convert an extender to the form of a policy.

    Args:
        given: The extender as written.
        at: Its path.
        keep: Whether an extender that kube-scheduler does not verify stays unverified.

    Raises:
        ConfigurationError: It is malformed; names the field.
    """
    target = f"spec.scheduling.{path_text(at)}"
    spec = {key: given[key] for key in SAME if given.get(key) not in (None, "")}
    notes = [
        carried((*at, key), f"{target}.{key}")
        if key in spec
        else dropped((*at, key), "It is empty, as if left out.")
        for key in SAME
        if key in given
    ]
    notes += _timeout(given, spec, at, target)
    tls = given.get("tlsConfig")
    if isinstance(tls, Mapping) or given.get("enableHTTPS"):
        notes += _tls(given, tls if isinstance(tls, Mapping) else {}, spec, at, keep=keep)
    return spec, notes


def _timeout(given: Mapping[str, Any], spec: dict[str, Any], at: Path, target: str) -> Iterator[Note]:
    text = given.get("httpTimeout")
    if text is None:
        return
    path = (*at, "httpTimeout")
    try:
        seconds = duration_s("0s" if text in (0, "0") else str(text))
    except ValueError as exc:
        raise ConfigurationError(path_text(path), str(exc)) from exc
    if seconds > LONGEST_TIMEOUT_S:
        spec["httpTimeout"] = f"{LONGEST_TIMEOUT_S:.0f}s"
        yield differs(
            f"{target}.httpTimeout", f"{text} becomes {spec['httpTimeout']}, the longest allowed.", path
        )
    else:
        spec["httpTimeout"] = "0s" if text in (0, "0") else str(text)
        yield carried(path, f"{target}.httpTimeout")


def _tls(
    given: Mapping[str, Any], tls: Mapping[str, Any], spec: dict[str, Any], at: Path, *, keep: bool
) -> Iterator[Note]:
    target = f"spec.scheduling.{path_text(at)}"
    if not str(given.get("urlPrefix") or "").startswith("https://"):
        for key in ("enableHTTPS", "tlsConfig"):
            if key in given:
                yield dropped((*at, key), "The urlPrefix is http://, so it had no effect; left out.")
        return
    config: dict[str, Any] = {}
    for key, value in tls.items():
        path = (*at, "tlsConfig", key)
        if key in FILES and value:
            text = f"A policy holds no files; put the content, in base64, into tlsConfig.{FILES[key]}."
            yield dropped(path, text)
        elif key not in FILES and value not in (None, "", False):
            config[key] = value
            yield carried(path, f"{target}.tlsConfig.{key}")
        else:
            yield dropped(path, "It is empty and the default; left out.")
    verified = bool(config.get("caData") or config.get("insecure") or tls.get("caFile"))
    path = (*at, "enableHTTPS")
    if given.get("enableHTTPS") and not verified:
        if keep:
            config["insecure"] = True
            text = "kube-scheduler verifies no server without a CA; tlsConfig.insecure says so."
        else:
            text = "kube-scheduler verifies no server without a CA; here the operator's system must trust it."
        yield differs(f"{target}.tlsConfig", text, path)
    elif "enableHTTPS" in given:
        yield carried(path, f"{target}.urlPrefix", "An https:// address is enough.")
    if config:
        spec["tlsConfig"] = config
