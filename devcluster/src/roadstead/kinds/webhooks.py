"""Sets defaults of webhook configurations and checks them.

Source: Kubernetes v1.36 ``pkg/apis/admissionregistration/{v1,validation}``, apiserver ``pkg/util/webhook``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from roadstead.kinds.checks.fields import (
    duplicate,
    invalid,
    label_selector,
    one_of,
    port_number,
    required,
    too_many,
)
from roadstead.kinds.checks.metadata import qualified_name_faults, subdomain_faults
from roadstead.kinds.kind import Kind

if TYPE_CHECKING:
    from roadstead.kinds.admission import PolicyFault
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_FORM = "; desired format: https://host[/path]"
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_REVIEWS = ("v1", "v1beta1")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_MOST_CONDITIONS = 64


class WebhookConfigurations(Kind):
    """Configurations of either kind of webhook.

    Args:
        fault: of expressions.
        mutating: whether its webhooks change objects.
    """

    counts_generation = True

    def __init__(self, fault: PolicyFault, *, mutating: bool) -> None:
        self._fault = fault
        self._mutating = mutating

    def default(self, obj: Obj) -> None:
        """As in ``Kind``."""
        for hook in obj.get("webhooks") or ():
            hook.setdefault("failurePolicy", "Fail")
            hook.setdefault("matchPolicy", "Equivalent")
            hook.setdefault("namespaceSelector", {})
            hook.setdefault("objectSelector", {})
            hook.setdefault("timeoutSeconds", 10)
            if self._mutating:
                hook.setdefault("reinvocationPolicy", "Never")
            for rule in hook.get("rules") or ():
                rule.setdefault("scope", "*")
            service = (hook.get("clientConfig") or {}).get("service")
            if service is not None:
                service.setdefault("port", 443)

    def spec_changed(self, new: Obj, old: Obj) -> bool:
        """As in ``Kind``."""
        return bool(new.get("webhooks") != old.get("webhooks"))

    def validate_create(self, obj: Obj) -> list[Cause]:
        """As in ``Kind``."""
        causes: list[Cause] = []
        names: set[str] = set()
        for index, hook in enumerate(obj.get("webhooks") or ()):
            at, name = f"webhooks[{index}]", hook.get("name") or ""
            causes += self._causes(hook, at)
            causes += review_causes(
                hook.get("admissionReviewVersions") or [],
                f"{at}.admissionReviewVersions",
                f"must specify one of {', '.join(_REVIEWS)}",
            )
            if name in names:
                causes.append(duplicate(f"{at}.name", name))
            names |= {name} - {""}
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As in ``Kind``."""
        del old
        return self.validate_create(new)

    def _causes(self, hook: Obj, at: str) -> list[Cause]:
        causes = _name_causes(hook.get("name") or "", f"{at}.name")
        for index, rule in enumerate(hook.get("rules") or ()):
            causes += _rule_causes(rule, f"{at}.rules[{index}]")
        causes += one_of(f"{at}.failurePolicy", hook["failurePolicy"], ("Fail", "Ignore"))
        causes += one_of(f"{at}.matchPolicy", hook["matchPolicy"], ("Equivalent", "Exact"))
        effects = hook.get("sideEffects")
        if effects is None:
            causes.append(required(f"{at}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
        else:
            causes += one_of(f"{at}.sideEffects", effects, _SIDE_EFFECTS)
        if not 1 <= hook["timeoutSeconds"] <= 30:
            message = "the timeout value must be between 1 and 30 seconds"
            causes.append(invalid(f"{at}.timeoutSeconds", hook["timeoutSeconds"], message))
        for selector in ("namespaceSelector", "objectSelector"):
            causes += label_selector(hook.get(selector), f"{at}.{selector}")
        if self._mutating:
            causes += one_of(f"{at}.reinvocationPolicy", hook["reinvocationPolicy"], ("IfNeeded", "Never"))
        causes += client_causes(hook.get("clientConfig") or {}, f"{at}.clientConfig")
        return causes + self._condition_causes(hook.get("matchConditions") or [], f"{at}.matchConditions")

    def _condition_causes(self, conditions: list[Obj], at: str) -> list[Cause]:
        causes: list[Cause] = []
        if len(conditions) > _MOST_CONDITIONS:
            causes.append(too_many(at, len(conditions), _MOST_CONDITIONS))
        names: set[str] = set()
        for index, one in enumerate(conditions):
            here, name = f"{at}[{index}]", one.get("name") or ""
            expression = one.get("expression") or ""
            if not expression.strip():
                causes.append(required(f"{here}.expression"))
            elif fault := self._fault(expression, "bool"):
                causes.append(invalid(f"{here}.expression", expression, fault))
            if not name:
                causes.append(required(f"{here}.name"))
            else:
                causes += [invalid(f"{here}.name", name, fault) for fault in qualified_name_faults(name)]
            if name in names:
                causes.append(duplicate(f"{here}.name", name))
            names |= {name} - {""}
        return causes


def _name_causes(name: str, at: str) -> list[Cause]:
    if not name:
        return [required(at)]
    if faults := subdomain_faults(name):
        return [invalid(at, name, ",".join(faults))]
    if name.count(".") < 2:
        return [invalid(at, name, "should be a domain with at least three segments separated by dots")]
    return []


def _rule_causes(rule: Obj, at: str) -> list[Cause]:
    causes = _wildcard_causes(rule.get("operations") or [], f"{at}.operations", "operations")
    for index, one in enumerate(rule.get("operations") or ()):
        causes += one_of(f"{at}.operations[{index}]", one, _OPERATIONS)
    causes += _wildcard_causes(rule.get("apiGroups") or [], f"{at}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or []
    causes += _wildcard_causes(versions, f"{at}.apiVersions", "API versions")
    causes += [required(f"{at}.apiVersions[{index}]") for index, one in enumerate(versions) if not one]
    causes += _resource_causes(rule.get("resources") or [], f"{at}.resources")
    return causes + one_of(f"{at}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))


def _wildcard_causes(given: list[str], at: str, what: str) -> list[Cause]:
    if not given:
        return [required(at)]
    if len(given) > 1 and "*" in given:
        return [invalid(at, given, f"if '*' is present, must not specify other {what}")]
    return []


def _resource_causes(resources: list[str], at: str) -> list[Cause]:
    if not resources:
        return [required(at)]
    causes: list[Cause] = []
    whole: set[str] = set()  # those of which all subresources are named
    everywhere: set[str] = set()  # subresources that are named of all resources
    for index, one in enumerate(resources):
        resource, slash, sub = one.partition("/")
        if not one:
            causes.append(required(f"{at}[{index}]"))
        if not slash:
            continue
        if resource in whole:
            causes.append(
                invalid(f"{at}[{index}]", one, f"if '{resource}/*' is present, must not specify {one}")
            )
        if sub in everywhere:
            causes.append(invalid(f"{at}[{index}]", one, f"if '*/{sub}' is present, must not specify {one}"))
        whole |= {resource} if sub == "*" else set()
        everywhere |= {sub} if resource == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        causes.append(invalid(at, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any(one and "/" not in one and one != "*" for one in resources):
        message = "if '*' is present, must not specify other resources without subresources"
        causes.append(invalid(at, resources, message))
    return causes


def client_causes(client: Obj, at: str) -> list[Cause]:
    """Why a ``clientConfig`` is invalid, which has its defaults."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(at, "exactly one of url or service is required")]
    if service is None:
        return _url_causes(str(url), f"{at}.url")
    here = f"{at}.service"
    # kube-apiserver names the field of the name where the namespace is missing, and the other way round.
    causes = [] if service.get("namespace") else [required(f"{here}.name", "service name is required")]
    if not service.get("name"):
        causes.append(required(f"{here}.namespace", "service namespace is required"))
    if port_number(here, service["port"]):
        message = "port is not valid: must be between 1 and 65535, inclusive"
        causes.append(invalid(f"{here}.port", service["port"], message))
    path = service.get("path") or "/"
    if not path.startswith("/"):
        causes.append(invalid(f"{here}.path", path, "must start with a '/'"))
    steps = path[1:].removesuffix("/").split("/") if path != "/" else []
    for index, step in enumerate(steps):
        if not step:
            causes.append(invalid(f"{here}.path", path, f"segment[{index}] may not be empty"))
            continue
        causes += [
            invalid(f"{here}.path", path, f"segment[{index}]: {fault}") for fault in subdomain_faults(step)
        ]
    return causes


def _url_causes(url: str, at: str) -> list[Cause]:
    found = urlsplit(url)
    causes = []
    if found.scheme != "https":
        causes.append(invalid(at, found.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    user, _, host = found.netloc.rpartition("@")
    if not host:
        causes.append(invalid(at, "", f"host must be provided{_FORM}"))
    if user:
        causes.append(invalid(at, user, "user information is not permitted in the URL"))
    if found.fragment:
        causes.append(invalid(at, found.fragment, "fragments are not permitted in the URL"))
    if found.query:
        causes.append(invalid(at, found.query, "query parameters are not permitted in the URL"))
    return causes


def review_causes(versions: list[str], at: str, missing: str = "") -> list[Cause]:
    """Why the versions of reviews that a webhook knows are invalid.

    Args:
        versions: those versions.
        at: their field.
        missing: the message if the list is empty.
    """
    if not versions:
        return [required(at, missing)]
    causes = [
        invalid(f"{at}[{index}]", one, "duplicate version")
        for index, one in enumerate(versions)
        if one in versions[:index]
    ]
    if not set(versions) & set(_REVIEWS):
        causes.append(invalid(at, versions, f"must include at least one of {', '.join(_REVIEWS)}"))
    return causes
