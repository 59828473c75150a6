"""DeschedulerPolicy, ``descheduler/v1alpha2``: the file that configures the kubernetes-sigs descheduler.

Types are as strict as in upstream's decoder. Unknown fields are ignored everywhere except in plugin
arguments, which the plugins check themselves.
Source: descheduler v0.36, ``pkg/api/v1alpha2`` and ``pkg/descheduler/policyconfig.go``.
"""

import copy
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from plimsoll.framework import ConfigurationError
from plimsoll.framework.field_errors import field_errors

KUBERNETES_METRICS = "KubernetesMetrics"
PROMETHEUS = "Prometheus"

_META = {"apiversion": "apiVersion", "kind": "kind"}

Count = Annotated[StrictInt, Field(ge=0)]

ZEROES: Mapping[str, Any] = {"int_type": 0, "float_type": 0, "model_type": {}, "extra_forbidden": {}}
"""The value that Go's decoder reads for ``null``, by the type of the error here, else ""."""


class _Part(BaseModel):
    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )


class DeschedulerPluginConfig(_Part):
    """Arguments of one plugin, as written."""

    name: StrictStr = ""
    args: dict[str, Any] = {}


class DeschedulerPluginSet(_Part):
    """Plugins enabled at one extension point; upstream ignores disabled ones."""

    enabled: tuple[StrictStr, ...] = ()
    disabled: tuple[StrictStr, ...] = ()


class DeschedulerPlugins(_Part):
    """Plugins by extension point."""

    presort: DeschedulerPluginSet = DeschedulerPluginSet()
    sort: DeschedulerPluginSet = DeschedulerPluginSet()
    deschedule: DeschedulerPluginSet = DeschedulerPluginSet()
    balance: DeschedulerPluginSet = DeschedulerPluginSet()
    filter: DeschedulerPluginSet = DeschedulerPluginSet()
    preevictionfilter: DeschedulerPluginSet = DeschedulerPluginSet()


class DeschedulerProfile(_Part):
    """A named set of plugins with their arguments."""

    name: StrictStr = ""
    plugin_config: tuple[DeschedulerPluginConfig, ...] = ()
    plugins: DeschedulerPlugins = DeschedulerPlugins()


class SecretReference(_Part):
    """A Secret."""

    namespace: StrictStr = ""
    name: StrictStr = ""


class AuthToken(_Part):
    """The location of the bearer token."""

    secret_reference: SecretReference | None = None


class DeschedulerPrometheusProvider(_Part):
    """The address of Prometheus, and its token."""

    url: StrictStr = ""
    auth_token: AuthToken | None = None


class DeschedulerMetricsProvider(_Part):
    """A source of actual usage."""

    source: StrictStr = ""
    prometheus: DeschedulerPrometheusProvider | None = None


class MetricsCollector(_Part):
    """Deprecated field that enables KubernetesMetrics."""

    enabled: StrictBool = False


class DeschedulerPolicy(_Part):
    """The whole file."""

    api_version: Literal["", "descheduler/v1alpha2"] = ""
    kind: Literal["", "DeschedulerPolicy"] = ""
    profiles: tuple[DeschedulerProfile, ...] = ()
    node_selector: StrictStr = ""
    max_no_of_pods_to_evict_per_node: Count | None = None
    max_no_of_pods_to_evict_per_namespace: Count | None = None
    max_no_of_pods_to_evict_total: Count | None = None
    eviction_failure_event_notification: StrictBool = False
    metrics_collector: MetricsCollector | None = None
    metrics_providers: tuple[DeschedulerMetricsProvider, ...] = ()
    grace_period_seconds: StrictInt | None = None

    @model_validator(mode="before")
    @classmethod
    def _versioned(cls, document: Any) -> Any:
        """Find version and kind in any case, as upstream does; without a version no other field is known."""
        if not isinstance(document, dict):
            return document
        meta = {_META[key.lower()]: value for key, value in document.items() if key.lower() in _META}
        known = document if meta.get("apiVersion") else {}
        return {key: value for key, value in known.items() if key.lower() not in _META} | meta

    @model_validator(mode="after")
    def _providers(self) -> Self:
        sources = [provider.source for provider in self.metrics_providers]
        for source in sources:
            if sources.count(source) > 1:
                raise ValueError(
                    f'metric provider "{source}" is already configured,'
                    " each source can be configured only once"
                )
        collector = self.metrics_collector
        if collector is not None and collector.enabled and KUBERNETES_METRICS in sources:
            raise ValueError(
                "it is not allowed to combine metrics provider when metrics collector is enabled"
            )
        for provider in self.metrics_providers:
            if provider.source == PROMETHEUS:
                _check(provider.prometheus)
        return self

    @property
    def sources(self) -> frozenset[str]:
        """The configured sources of actual usage."""
        named = frozenset(provider.source for provider in self.metrics_providers)
        collector = self.metrics_collector
        return named | {KUBERNETES_METRICS} if collector is not None and collector.enabled else named


def _check(prometheus: DeschedulerPrometheusProvider | None) -> None:
    if prometheus is None:
        raise ValueError("prometheus configuration is required when prometheus source is enabled")
    if not prometheus.url:
        raise ValueError("prometheus URL is required when prometheus is enabled")
    try:
        parts = urlsplit(prometheus.url)
        _ = parts.port
    except ValueError as exc:
        raise ValueError(f"error parsing prometheus URL: {exc}") from exc
    token = prometheus.auth_token
    if token is not None:
        secret = token.secret_reference
        if secret is None:
            raise ValueError("prometheus authToken secret is expected to be set when authToken field is")
        if not (secret.name and secret.namespace):
            raise ValueError("prometheus authToken secret reference does not set both namespace and name")


def read_policy(document: Mapping[str, Any]) -> DeschedulerPolicy:
    """Read the policy of a document parsed from YAML or JSON; does not judge its plugins.

    Raises:
        ConfigurationError: descheduler rejects it, too.
    """
    try:
        plain = as_decoded(DeschedulerPolicy, document)
        return DeschedulerPolicy.model_validate(plain, by_alias=True, by_name=False)
    except ValidationError as exc:
        first = field_errors(exc, model=DeschedulerPolicy)[0]
        raise ConfigurationError(first.path or "policy", first.sentence) from exc


def as_decoded(model: type[BaseModel], document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with nulls as Go's decoder reads them: a field is dropped, an item gets its zero value."""
    plain: dict[str, Any] = copy.deepcopy(dict(document))
    try:
        model.model_validate(plain, by_alias=True, by_name=False)
    except ValidationError as exc:
        for error in exc.errors():
            if error["input"] is not None or not error["loc"]:
                continue
            holder: Any = plain
            key, *rest = error["loc"]
            is_item = False
            for part in rest:
                if not isinstance(holder[key], dict | list):
                    is_item = True  # the last part is the type of number that was tried
                    break
                holder, key = holder[key], part
            is_item |= isinstance(key, int)
            if is_item or error["type"] in ("string_type", "extra_forbidden"):
                holder[key] = ZEROES.get(error["type"], "")
            else:
                holder.pop(key, None)
    return plain
