"""A Prometheus server that strategies read usage from: address, credentials, queries.

Credentials are in Secrets of the operator's own namespace, because the author of a policy may not be
allowed to read them; a Secret names the server that it may be shown to.
Source: descheduler v0.36, ``Prometheus`` of ``MetricsProvider``, for ``url`` and ``authToken``. Differs: the
rest is ours, and no token is shown over HTTP unless the policy says so.
"""

import re
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from plimsoll.api.schema.fields import NamespaceName, ObjectName
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import Rule

#: Addresses of a Prometheus server, without what would cut off the path that is appended, and without
#: credentials, which conditions and logs would show.
PLAIN_URL: Final = (
    r"^https?://([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$"
)

#: The strategies' name of what a query of their own measures.
METRIC_RESOURCE: Final = "MetricResource"

HTTPS: Final = "https://"

LabelName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128, examples=["node"])]

Query = Annotated[str, Field(min_length=1, max_length=8192)]


def is_plain_url(url: str) -> bool:
    """Whether an address has a scheme, a host, perhaps a port and a path, and nothing else."""
    return re.fullmatch(PLAIN_URL, url) is not None and not url.endswith("\n")


class SecretReferenceSpec(Resource):
    """Names a Secret."""

    name: ObjectName = Field(description="Name of the Secret.")
    namespace: NamespaceName | None = Field(
        default=None, description="The operator's own namespace; another one is an error."
    )


class AuthTokenSpec(Resource):
    """A bearer token in a Secret."""

    secret_reference: SecretReferenceSpec = Field(
        description="The Secret; its key prometheusAuthToken has the token, as in descheduler."
    )


class BasicAuthSpec(Resource):
    """A user name and a password in a Secret."""

    secret_name: ObjectName = Field(
        description="A Secret of the operator's namespace with the keys username and password."
    )


class PrometheusTLS(Resource):
    """How the server is recognised, and how the operator is."""

    rules: ClassVar = (
        Rule(
            cel="!(has(self.caSecret) && has(self.insecureSkipVerify) && self.insecureSkipVerify)",
            holds=lambda tls: not (tls.ca_secret is not None and tls.insecure_skip_verify),
            message="caSecret verifies the server and insecureSkipVerify does not; keep one of them",
            field="insecureSkipVerify",
        ),
    )

    ca_secret: ObjectName | None = Field(
        default=None,
        description="A Secret of the operator's namespace; its key ca.crt has the certificates that the"
        " server's must come from. Left out, those of the operator's image.",
    )
    server_name: str | None = Field(
        default=None, min_length=1, max_length=253, description="Name in the server's certificate."
    )
    client_cert_secret: ObjectName | None = Field(
        default=None,
        description="A Secret of the operator's namespace with the client's certificate and key: tls.crt and"
        " tls.key.",
    )
    insecure_skip_verify: bool = Field(
        default=False, description="The server's certificate is not verified; for tests."
    )


class NodeQuerySpec(Resource):
    """A query that measures one resource of nodes."""

    query: Query = Field(description="Query in PromQL that returns one value for each node.")
    unit: Literal["Share", "Cores", "Bytes"] = Field(
        description="What a value is: a share of the node's allocatable from 0 to 1, cores, or bytes."
    )
    node_label: LabelName | None = Field(
        default=None,
        description="The label with the node's name. Left out: node, else instance, which may be the node's"
        " name or its internal IP, with or without a port.",
    )


class PodQuerySpec(Resource):
    """A query that measures one resource of pods, labelled namespace and pod."""

    query: Query = Field(
        description="Query in PromQL; the values of all series of a pod are added up, as of its containers."
    )
    unit: Literal["Cores", "Bytes"] = Field(description="What a value is: cores or bytes.")


class PodQueries(Resource):
    """The queries that measure pods."""

    rules: ClassVar = (
        Rule(
            cel="!has(self.cpu) || self.cpu.unit == 'Cores'",
            holds=lambda queries: queries.cpu is None or queries.cpu.unit == "Cores",
            message="cpu of pods is measured in Cores",
            field="cpu",
        ),
        Rule(
            cel="!has(self.memory) || self.memory.unit == 'Bytes'",
            holds=lambda queries: queries.memory is None or queries.memory.unit == "Bytes",
            message="memory of pods is measured in Bytes",
            field="memory",
        ),
    )

    cpu: PodQuerySpec | None = Field(default=None, description="Query of the pods' use of cpu, in cores.")
    memory: PodQuerySpec | None = Field(
        default=None, description="Query of the pods' use of memory, in bytes."
    )


#: A rule about the names of a map, in CEL and in Python.
_NAMES: Final = r"^[a-zA-Z0-9]([-a-zA-Z0-9._/]*[a-zA-Z0-9])?$"


class UsageQueries(Resource):
    """The queries of a policy."""

    rules: ClassVar = (
        Rule(
            cel=f"!has(self.node) || self.node.all(name, name.matches(r'{_NAMES}') && name.size() <= 253"
            f" && name != 'pods' && name != '{METRIC_RESOURCE}')",
            holds=lambda queries: all(
                re.fullmatch(_NAMES, name) and len(name) <= 253 and name not in ("pods", METRIC_RESOURCE)
                for name in queries.node
            ),
            message="name a query like the resource that thresholds have, as cpu, memory or example.com/io;"
            f" pods are counted, and {METRIC_RESOURCE} is what a strategy's own query measures",
            field="node",
        ),
        Rule(
            cel="!has(self.node) || self.node.all(name, self.node[name].unit == 'Share'"
            " || (name == 'cpu' && self.node[name].unit == 'Cores')"
            " || (name == 'memory' && self.node[name].unit == 'Bytes'))",
            holds=lambda queries: all(
                query.unit == "Share" or (name, query.unit) in (("cpu", "Cores"), ("memory", "Bytes"))
                for name, query in queries.node.items()
            ),
            message="cpu is measured in Cores or as a Share, memory in Bytes or as a Share, all else as a"
            " Share",
            field="node",
        ),
    )

    node: Annotated[dict[str, NodeQuerySpec], Field(max_length=8)] = Field(
        default={}, description="Queries of the use of nodes, by the name that thresholds have."
    )
    pod: PodQueries = Field(
        default=PodQueries.model_construct(),
        description="Queries of the use of pods; without them one pod is moved off a node in each run.",
    )


class PrometheusProviderSpec(Resource):
    """A Prometheus server."""

    rules: ClassVar = (
        Rule(
            cel=f"self.url.matches(r'{PLAIN_URL}')",
            holds=lambda self: is_plain_url(self.url),
            message="write it like http://prometheus.monitoring.svc:9090, with a path if need be; a user,"
            " a password, a query (?) and a fragment (#) are not allowed",
            field="url",
        ),
        Rule(
            cel="[has(self.authToken), has(self.basicAuth), has(self.serviceAccountToken)"
            " && self.serviceAccountToken].filter(one, one).size() <= 1",
            holds=lambda self: (
                (self.auth_token is not None) + (self.basic_auth is not None) + self.service_account_token
                <= 1
            ),
            message="authToken, basicAuth and serviceAccountToken exclude one another; keep one of them",
        ),
        Rule(
            cel="!has(self.tls) || self.url.startsWith('https://')",
            holds=lambda self: self.tls is None or self.url.startswith(HTTPS),
            message="tls needs a url that begins with https://",
            field="tls",
        ),
        Rule(
            cel="self.url.startsWith('https://') || (has(self.allowPlainHTTP) && self.allowPlainHTTP)"
            " || !(has(self.authToken) || has(self.basicAuth) || has(self.headersSecret)"
            " || (has(self.serviceAccountToken) && self.serviceAccountToken))",
            holds=lambda self: self.url.startswith(HTTPS) or self.allow_plain_http or not self.shows_secrets,
            message="a token, a password or headers over http:// can be read by others on the way; use"
            " https://, or set allowPlainHTTP: true",
            field="url",
        ),
    )

    url: str = Field(
        max_length=2048,
        description="Address of Prometheus, to which /api/v1/query is appended.",
        examples=["https://prometheus.monitoring.svc:9090"],
    )
    auth_token: AuthTokenSpec | None = Field(
        default=None, description="A bearer token, from a Secret of the operator's namespace."
    )
    service_account_token: bool = Field(
        default=False,
        description="The projected token of the operator's ServiceAccount for Prometheus is shown; see"
        " deploy/components/prometheus-access.",
    )
    basic_auth: BasicAuthSpec | None = Field(
        default=None, description="A user name and a password, from a Secret of the operator's namespace."
    )
    headers_secret: ObjectName | None = Field(
        default=None,
        description="A Secret of the operator's namespace; each of its keys is the name of a header, such as"
        " X-Scope-OrgID, and is sent with its value.",
    )
    tls: PrometheusTLS | None = Field(default=None, description="How the server is recognised.")
    allow_plain_http: bool = Field(
        default=False,
        alias="allowPlainHTTP",
        description="Whether what comes from Secrets may be sent over http://, where others can read it.",
    )
    queries: UsageQueries = Field(
        default=UsageQueries.model_construct(),
        description="What is measured, for strategies whose thresholds name these resources.",
    )

    @property
    def shows_secrets(self) -> bool:
        """Whether a request carries what others must not see."""
        return bool(self.auth_token or self.basic_auth or self.headers_secret or self.service_account_token)
