"""HTTP extenders: services that have a say in scheduling, in the shape of KubeSchedulerConfiguration v1.

Source: kube-scheduler v1.36, ``Extender`` and ``validateExtenders``. Differs: certificates are given as
data, never as files; HTTPS without a CA must disable verification explicitly.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from plimsoll.api.schema.fields import Duration, duration_s
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import Rule, UniqueItems

#: The longest that a pod may wait for one answer.
LONGEST_TIMEOUT_S = 60.0

Verb = Annotated[str, Field(pattern=r"^[-A-Za-z0-9._~/]*$", max_length=253, examples=["filter"])]
"""What is appended to the URL; empty is the same as left out."""

Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/=\r\n]+$", max_length=65_536)]
"""PEM, in base64."""


class ManagedResource(Resource):
    """An extended resource that the extender looks after."""

    rules: ClassVar = (
        Rule(
            cel="!self.name.contains('kubernetes.io/') && !self.name.startsWith('requests.')",
            holds=lambda one: "kubernetes.io/" not in one.name and not one.name.startswith("requests."),
            message="an extended resource has its owner's domain, not kubernetes.io, as in example.com/gpu",
            field="name",
        ),
    )

    name: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
            max_length=317,
            examples=["example.com/gpu"],
        ),
    ] = Field(description="Name of the resource; one extender looks after it.")
    ignored_by_scheduler: bool = Field(
        default=False,
        description="NodeResourcesFit does not count this resource; these replace its ignoredResources.",
    )


class ExtenderTLS(Resource):
    """How the extender is recognised, and how we are."""

    rules: ClassVar = (
        Rule(
            cel="!(has(self.caData) && has(self.insecure) && self.insecure)",
            holds=lambda tls: not (tls.ca_data is not None and tls.insecure),
            message="caData verifies the server and insecure does not; keep one of them",
            field="insecure",
        ),
        Rule(
            cel="has(self.certData) == has(self.keyData)",
            holds=lambda tls: (tls.cert_data is None) == (tls.key_data is None),
            message="a client certificate needs both, certData and keyData",
            field="keyData",
        ),
    )

    insecure: bool = Field(default=False, description="The server's certificate is not verified; for tests.")
    server_name: str | None = Field(
        default=None, min_length=1, max_length=253, description="Name in the server's certificate."
    )
    ca_data: Base64 | None = Field(
        default=None,
        description="Certificates that the server's must come from; left out, the operator's system's.",
    )
    cert_data: Base64 | None = Field(
        default=None, description="Client certificate that the operator shows to the extender."
    )
    key_data: Base64 | None = Field(
        default=None,
        description="Key of the client certificate; all who may read the policy can read it: use it for "
        "nothing else.",
    )


class ExtenderSpec(Resource):
    """A service that is asked about pods over HTTP."""

    rules: ClassVar = (
        Rule(
            cel="!has(self.prioritizeVerb) || self.prioritizeVerb == ''"
            " || (has(self.weight) && self.weight > 0)",
            holds=lambda one: not one.prioritize_verb or bool(one.weight),
            message="an extender with prioritizeVerb needs a weight above 0",
            field="weight",
        ),
        Rule(
            cel="!(has(self.tlsConfig) || (has(self.enableHTTPS) && self.enableHTTPS))"
            " || self.urlPrefix.startsWith('https://')",
            holds=lambda one: (
                not (one.tls_config or one.enable_https) or one.url_prefix.startswith("https://")
            ),
            message="enableHTTPS and tlsConfig need a urlPrefix that begins with https://",
            field="urlPrefix",
        ),
        Rule(
            cel="!(has(self.enableHTTPS) && self.enableHTTPS) || (has(self.tlsConfig)"
            " && (has(self.tlsConfig.caData) || (has(self.tlsConfig.insecure) && self.tlsConfig.insecure)))",
            holds=lambda one: (
                not one.enable_https
                or (one.tls_config is not None and (one.tls_config.ca_data or one.tls_config.insecure))
            ),
            message="enableHTTPS without tlsConfig.caData verifies no server: add caData, or set insecure:"
            " true, or leave enableHTTPS out to trust the operator's system",
            field="enableHTTPS",
        ),
        Rule(
            cel="!has(self.httpTimeout) || duration(self.httpTimeout) <= duration('60s')",
            holds=lambda one: duration_s(one.http_timeout) <= LONGEST_TIMEOUT_S,
            message="a pod waits that long for one answer; at most 60s",
            field="httpTimeout",
        ),
    )

    url_prefix: Annotated[
        str,
        Field(
            pattern=r"^https?://[^\s/?#@]+(/[^\s?#@]*)?$",
            max_length=2048,
            examples=["https://gpu-extender.kube-system.svc:8443/scheduler"],
        ),
    ] = Field(description="Verbs are appended to it; no user, no query. It names the extender.")
    filter_verb: Verb | None = Field(default=None, description="Asked which feasible nodes to leave out.")
    prioritize_verb: Verb | None = Field(default=None, description="Asked for scores of 0 to 10.")
    preempt_verb: Verb | None = Field(default=None, description="Asked which victims of preemption to spare.")
    bind_verb: Verb | None = Field(default=None, description="Binds in place of the bind plugins.")
    weight: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="Factor of its scores; above 0 with prioritizeVerb."
    )
    enable_https: bool = Field(
        default=False,
        alias="enableHTTPS",
        description="Whether the extender is called by HTTPS, as in kube-scheduler; an https:// URL is "
        "enough.",
    )
    tls_config: ExtenderTLS | None = Field(default=None, description="How server and client are verified.")
    http_timeout: Duration = Field(
        default="5s",
        alias="httpTimeout",
        description="For one answer, from the connection to its last byte; 0s means 5s.",
    )
    node_cache_capable: bool = Field(
        default=False, description="Whether the extender knows the nodes: names are sent, not objects."
    )
    managed_resources: Annotated[tuple[ManagedResource, ...], Field(max_length=16), UniqueItems("name")] = (
        Field(
            default=(),
            description="Only pods with a container that names one of them concern it; none means every pod.",
        )
    )
    ignorable: bool = Field(default=False, description="When it fails, pods are scheduled without it.")


def _managed_once(extenders: tuple[ExtenderSpec, ...]) -> bool:
    names = [each.name for one in extenders for each in one.managed_resources]
    return len(names) == len(set(names))


EXTENDER_RULES = (
    Rule(
        cel="!has(self.extenders)"
        " || self.extenders.filter(one, has(one.bindVerb) && one.bindVerb != '').size() <= 1",
        holds=lambda spec: sum(bool(one.bind_verb) for one in spec.extenders) <= 1,
        message="only one extender can bind; keep one bindVerb",
        field="extenders",
    ),
    Rule(
        cel="!has(self.extenders) || self.extenders.all(one, !has(one.managedResources)"
        " || one.managedResources.all(each, self.extenders.exists_one(other, has(other.managedResources)"
        " && other.managedResources.exists(its, its.name == each.name))))",
        holds=lambda spec: _managed_once(spec.extenders),
        message="a resource is managed by one extender; name it once",
        field="extenders",
    ),
)
"""What must hold of the extenders of one profile together."""
