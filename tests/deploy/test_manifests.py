"""The overlays and the chart of deploy/ grant the same rights and run the same pod."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.manifests import (
    CHART,
    CRDS_CHART,
    DEPLOY,
    NAME,
    OVERLAYS,
    VALUES,
    Obj,
    documents,
    documents_with,
    grants,
    grants_with,
    of_chart,
    of_kind,
    operators_grants,
    parsed,
    pod_template,
    run,
    templated,
)
from deploy.tools import ROOT, tool
from plimsoll.app.command import run as plimsoll_run
from plimsoll.app.settings import Settings
from plimsoll.cluster.watched_resources import WATCHED
from plimsoll.http_services.credentials import ADDRESSES, TOKEN_FOLDER
from plimsoll.model.kinds.owned_group import OWNERS
from plimsoll.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

#: Everything that can be installed: overlays, and the chart with each set of values.
every_installation = pytest.mark.parametrize(
    "objects",
    [
        *(pytest.param((documents, each), id=each) for each in OVERLAYS),
        *(pytest.param((of_chart, each), id=each or "defaults") for each in VALUES),
    ],
    indirect=True,
)

#: What may be written without placing or moving anything.
HARMLESS = {
    ("create", "plimsoll.dev", "evictions"),
    ("delete", "plimsoll.dev", "evictions"),
    ("patch", "plimsoll.dev", "evictions/status"),
    ("patch", "plimsoll.dev", "nodemaintenances/status"),
    ("patch", "plimsoll.dev", "rebalancingrules/status"),
    ("patch", "plimsoll.dev", "schedulingpolicies/status"),
    ("create", "events.k8s.io", "events"),
    ("patch", "events.k8s.io", "events"),
    ("create", "coordination.k8s.io", "leases"),
    ("update", "coordination.k8s.io", "leases"),
}


@pytest.fixture
def objects(request: pytest.FixtureRequest) -> list[Obj]:
    """What one installation installs."""
    read, name = request.param
    found: list[Obj] = read(name)
    return found


def operator(objects: list[Obj]) -> Obj:
    """The operator's container."""
    (container,) = pod_template(objects)["spec"]["containers"]
    found: Obj = container
    return found


def test_every_file_belongs_to_a_kustomization() -> None:
    """There are no files that no kustomization applies."""
    files = {
        path
        for folder in ("base", "components", *OVERLAYS)
        for path in (DEPLOY / folder).rglob("*.yaml")
        if path.name != "kustomization.yaml"
    }
    named = set()
    for path in DEPLOY.rglob("kustomization.yaml"):
        read = yaml.safe_load(path.read_text(encoding="utf-8"))
        for each in (*read.get("resources", ()), *(patch["path"] for patch in read.get("patches", ()))):
            named.add((path.parent / each).resolve())

    assert files <= named


@every_installation
def test_the_pod_meets_the_restricted_standard(objects: list[Obj]) -> None:
    """Pod Security 'restricted', with a numeric user, a read-only root, and nothing of the node."""
    spec = pod_template(objects)["spec"]

    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert operator(objects)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"} & spec.keys()
    assert "hostPort" not in json.dumps(operator(objects)["ports"])


def test_the_namespace_refuses_what_is_not_restricted() -> None:
    """The overlays make the namespace; helm's is made at the installation."""
    (namespace,) = of_kind(documents("dry-run"), "Namespace")

    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@every_installation
def test_probes_ask_the_ports_that_the_operator_opens(objects: list[Obj]) -> None:
    """Ports are the command's defaults, and the options exist and are taken."""
    container = operator(objects)
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    options = {"--" + name.replace("_", "-") for name in inspect.signature(plimsoll_run).parameters}

    assert ports == {"health": Settings().health_port, "metrics": Settings().metrics_port}
    assert container["args"][0] == "run"
    assert {each.partition("=")[0] for each in container["args"][1:]} <= options
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
    assert container["startupProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}


@every_installation
def test_what_is_watched_may_be_listed_and_watched(objects: list[Obj]) -> None:
    """Each reflector's collection."""
    granted = operators_grants(objects)
    for resource in WATCHED:
        parts = resource.path.strip("/").split("/")
        group = parts[1] if parts[0] == "apis" else ""
        for verb in ("list", "watch"):
            assert (verb, group, resource.name) in granted


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param(documents("dry-run"), id="overlay"),
        pytest.param(parsed(templated("")), id="chart"),
    ],
)
def test_a_dry_run_can_change_nothing_but_what_it_says(objects: list[Obj]) -> None:
    """Records, statuses of our kinds, events, its lease: the API server refuses all else."""
    writes = {grant for grant in operators_grants(objects) if grant[0] not in {"get", "list", "watch"}}

    assert writes == HARMLESS


@every_installation
def test_the_lease_may_be_written_by_its_name_and_in_its_namespace_only(objects: list[Obj]) -> None:
    """Of other leases, such as kube-scheduler's, the operator can neither read nor change any."""
    roles = [
        each for each in of_kind(objects, "Role", "ClusterRole") if "leases" in json.dumps(each["rules"])
    ]
    if "--leader-elect=false" in operator(objects)["args"]:
        assert roles == []
        return
    (role,) = roles
    option = "--leader-elect-resource-name="
    chosen = [each.removeprefix(option) for each in operator(objects)["args"] if each.startswith(option)]

    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", NAME)
    unnamed = {verb for rule in role["rules"] if "resourceNames" not in rule for verb in rule["verbs"]}
    assert unnamed == {"create"}
    names = [name for rule in role["rules"] for name in rule.get("resourceNames", ())]
    assert names == (chosen or [Settings().leader_elect_resource_name])


@every_installation
def test_no_role_has_a_wildcard_or_reads_secrets(objects: list[Obj]) -> None:
    """Neither the operator's nor Prometheus'."""
    for role in of_kind(objects, "Role", "ClusterRole"):
        for rule in role["rules"]:
            assert "*" not in {*rule["verbs"], *rule["apiGroups"], *rule["resources"]}
            assert not {"secrets", "configmaps"} & set(rule["resources"])


#: Groups and resources that the operator may patch in a part only.
NARROWED = [
    ("apps", "deployments"),
    ("apps", "deployments/scale"),
    ("argoproj.io", "rollouts/scale"),
    ("apps.kruise.io", "clonesets/scale"),
    ("", "nodes"),
]


@every_installation
def test_a_stolen_token_runs_nothing_and_grants_nothing(objects: list[Obj]) -> None:
    """No pod is created or changed, no command runs in one, no right is granted, no user is impersonated."""
    granted = operators_grants(objects)
    written = {(group, resource) for verb, group, resource in granted if verb not in {"get", "list", "watch"}}

    assert {resource for group, resource in written if group == ""} <= {
        *("pods", "pods/binding", "pods/eviction", "pods/status", "events"),
        *("nodes", "persistentvolumes", "persistentvolumeclaims"),
    }
    assert {verb for verb, group, resource in granted if (group, resource) == ("", "pods")} <= {
        *("get", "list", "watch", "delete"),
    }
    scaled = {each: group for group, each in NARROWED if group}
    guarded = {(group, each) for each, group in scaled.items() if guards(objects, each)}
    for plural in ("podgroups", "compositepodgroups"):  # a condition, which starts and ends no pod
        guarded.add(("scheduling.k8s.io", f"{plural}/status"))
    assert {group for group, _ in written - guarded} <= {
        *("", "coordination.k8s.io", "events.k8s.io", "plimsoll.dev"),
    }


def guards(objects: list[Obj], resource: str) -> list[Obj]:
    """The admission policies for updates of a resource."""
    return [
        each
        for each in of_kind(objects, "ValidatingAdmissionPolicy")
        if resource in each["spec"]["matchConstraints"]["resourceRules"][0]["resources"]
    ]


@every_installation
@pytest.mark.parametrize(("group", "resource"), NARROWED)
def test_who_may_patch_deployments_or_nodes_may_change_one_mark_alone(
    objects: list[Obj], group: str, resource: str
) -> None:
    """The right comes with the policy that narrows it, for the account that has the right."""
    patches = ("patch", group, resource) in operators_grants(objects)
    policies = guards(objects, resource)
    names = {policy["metadata"]["name"] for policy in policies}
    bindings = [
        each
        for each in of_kind(objects, "ValidatingAdmissionPolicyBinding")
        if each["spec"]["policyName"] in names
    ]
    assert len(policies) == len(bindings) == int(patches)
    for policy, binding in zip(policies, bindings, strict=True):
        (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
        assert group in rule["apiGroups"]
        assert rule["operations"] == ["UPDATE"]
        assert policy["spec"]["failurePolicy"] == "Fail"
        account = f"system:serviceaccount:{NAME}:{pod_template(objects)['spec']['serviceAccountName']}"
        (condition,) = policy["spec"]["matchConditions"]
        assert condition["expression"] == f"request.userInfo.username == '{account}'"
        assert binding["spec"]["policyName"] == policy["metadata"]["name"]
        assert binding["spec"]["validationActions"] == ["Deny", "Audit"]


@every_installation
def test_only_the_operators_account_writes_records(objects: list[Obj]) -> None:
    """Its service account's name is in the policy, whatever the release calls it."""
    (policy,) = (
        each
        for each in of_kind(objects, "ValidatingAdmissionPolicy")
        if each["metadata"]["name"].endswith("own-records")
    )
    (binding,) = (
        each
        for each in of_kind(objects, "ValidatingAdmissionPolicyBinding")
        if each["spec"]["policyName"] == policy["metadata"]["name"]
    )
    account = f"system:serviceaccount:{NAME}:{pod_template(objects)['spec']['serviceAccountName']}"
    (condition,) = policy["spec"]["matchConditions"]

    assert condition["expression"] == f"request.userInfo.username != '{account}'"
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"] == {
        "policyName": policy["metadata"]["name"],
        "validationActions": ["Deny", "Audit"],
    }


def test_a_dry_run_looks_at_deployments_and_changes_none() -> None:
    """The chart's surge.enabled without mode Enforce."""
    objects = parsed(templated("", "--set", "surge.enabled=true"))
    of_deployments = {verb for verb, _, resource in operators_grants(objects) if resource == "deployments"}

    assert of_deployments == {"get", "list"}
    assert guards(objects, "deployments") == []


def test_the_guards_can_be_left_to_others() -> None:
    """Where an installer may not write admission policies."""
    objects = parsed(
        templated(
            "surge-values.yaml", "--set", "surge.guard=false,rbac.guardNodes=false,rbac.guardRecords=false"
        )
    )

    assert of_kind(objects, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding") == []


def test_an_installer_can_add_what_plugins_read() -> None:
    """The chart's rbac.extraRules, for the operator's account, and nothing besides."""
    rule = "rbac.extraRules[0]."
    chosen = [
        f"{rule}apiGroups={{example.com}}",
        f"{rule}resources={{rackquotas}}",
        f"{rule}verbs={{list,watch}}",
    ]
    objects = parsed(templated("", *(part for each in chosen for part in ("--set", each))))

    added = operators_grants(objects) - operators_grants(of_chart(""))

    assert added == {("list", "example.com", "rackquotas"), ("watch", "example.com", "rackquotas")}


def test_pods_are_deleted_only_where_policies_preempt_by_deletion() -> None:
    """As kube-scheduler preempts, unless the component or the chart's value takes the right away."""
    deletion = ("delete", "", "pods")
    option = ("--set", "preemption.byDeletion=false")

    assert deletion in grants("enforce")
    assert grants("enforce") - grants_with("enforce", "preempt-by-eviction") == {deletion}
    assert grants("enforce") - operators_grants(parsed(templated("enforce-values.yaml", *option))) == {
        deletion
    }
    assert operators_grants(parsed(templated("", *option))) == grants("dry-run")


@every_installation
def test_the_operator_reaches_dns_and_the_ports_of_api_servers(objects: list[Obj]) -> None:
    """Names are resolved by the cluster's DNS; API servers have no address that a manifest knows."""
    policies = of_kind(objects, "NetworkPolicy")
    if not policies:
        return
    (policy,) = policies
    servers, names, *others = policy["spec"]["egress"]

    assert "to" not in servers
    assert {each["port"] for each in servers["ports"]} <= {443, 6443, 8443}
    assert names["ports"] == [{"port": 53, "protocol": protocol} for protocol in ("TCP", "UDP")]
    assert [sorted(each) for each in names["to"]] == [["namespaceSelector", "podSelector"], ["ipBlock"]]
    assert names["to"][0]["podSelector"] == {"matchLabels": {"k8s-app": "kube-dns"}}, "pods of others"
    assert others in ([], [{"ports": [{"port": 8888}]}])  # the chart's extraEgress, in one set of values


@every_installation
def test_an_apply_that_is_repeated_changes_nothing(objects: list[Obj]) -> None:
    """What the API server adds to entries of lists is written: kubectl would send such lists each time."""
    rules = [
        (each["metadata"]["name"], rule)
        for each in of_kind(objects, "ValidatingAdmissionPolicy")
        for rule in each["spec"]["matchConstraints"]["resourceRules"]
    ]
    ports = [
        (each["metadata"]["name"], port)
        for each in of_kind(objects, "NetworkPolicy")
        for way in ("ingress", "egress")
        for rule in each["spec"].get(way, ())
        for port in rule.get("ports", ())
        if port["port"] != 8888  # the installer's
    ]

    assert [each for each in rules if "scope" not in each[1]] == []
    assert [each for each in ports if "protocol" not in each[1]] == []


def test_security_md_says_where_the_operator_may_connect_to() -> None:
    """The ports and the lack of a destination, as the manifest has them; the chart takes addresses."""
    (policy,) = of_kind(documents("enforce"), "NetworkPolicy")
    ports = [str(each["port"]) for each in policy["spec"]["egress"][0]["ports"]]
    text = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
    option = ("--set", "networkPolicy.apiServerCIDRs={10.0.0.10/32,10.0.0.11/32}")
    (narrowed,) = of_kind(parsed(templated("", *option)), "NetworkPolicy")

    assert f"to any address on ports {', '.join(ports[:-1])} and {ports[-1]}" in text
    assert narrowed["spec"]["egress"][0]["to"] == [
        {"ipBlock": {"cidr": "10.0.0.10/32"}},
        {"ipBlock": {"cidr": "10.0.0.11/32"}},
    ]


@every_installation
def test_installing_gives_users_no_rights(objects: list[Obj]) -> None:
    """Who may write policies is the cluster's to say: nothing is added to view, edit or admin."""
    for role in of_kind(objects, "ClusterRole"):
        assert not any("aggregate-to" in label for label in role["metadata"].get("labels", {}))
    account = pod_template(objects)["spec"]["serviceAccountName"]
    subjects = {
        (subject["kind"], subject["name"])
        for each in of_kind(objects, "RoleBinding", "ClusterRoleBinding")
        for subject in each["subjects"]
    }

    assert subjects <= {("ServiceAccount", account), ("Group", "system:serviceaccounts:monitoring")}


def test_policies_belong_to_the_cluster() -> None:
    """An administrator of a namespace cannot write one there."""
    definition = yaml.safe_load(
        (ROOT / "crds/plimsoll.dev_schedulingpolicies.yaml").read_text(encoding="utf-8")
    )

    assert definition["spec"]["scope"] == "Cluster"


@every_installation
def test_maintenances_belong_to_the_cluster(objects: list[Obj]) -> None:
    """An administrator of a namespace cannot write one there, and the operator writes their status alone."""
    path = ROOT / "crds/plimsoll.dev_nodemaintenances.yaml"
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["scope"] == "Cluster"
    granted = {
        (verb, resource) for verb, _, resource in operators_grants(objects) if "maintenance" in resource
    }
    assert granted == {
        ("list", "nodemaintenances"),
        ("watch", "nodemaintenances"),
        ("patch", "nodemaintenances/status"),
    }


@every_installation
def test_replicas_keep_apart_and_may_be_drained(objects: list[Obj]) -> None:
    """More than one: another node for each, a budget that lets one go, a lease; one: none of these."""
    (deployment,) = of_kind(objects, "Deployment")
    budgets = of_kind(objects, "PodDisruptionBudget")
    spec = pod_template(objects)["spec"]
    selector = deployment["spec"]["selector"]
    if deployment["spec"]["replicas"] == 1:
        assert budgets == []
        assert "affinity" not in spec
        return
    (budget,) = budgets
    (apart,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (spread,) = spec["topologySpreadConstraints"]

    assert budget["spec"]["selector"] == selector
    assert budget["spec"]["maxUnavailable"] in {1, "50%"}
    assert (apart["topologyKey"], apart["labelSelector"]) == ("kubernetes.io/hostname", selector)
    assert (spread["topologyKey"], spread["labelSelector"]) == ("topology.kubernetes.io/zone", selector)
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert "--leader-elect=false" not in operator(objects)["args"]


@every_installation
def test_only_the_monitoring_namespace_may_connect(objects: list[Obj]) -> None:
    """Where it is named; and there the Service and the rights to find it exist."""
    metrics = [
        each for each in of_kind(objects, "RoleBinding") if each["metadata"]["name"].endswith("discovery")
    ]
    policies = of_kind(objects, "NetworkPolicy")
    if not policies:
        assert metrics == []
        return
    (policy,) = policies
    (deployment,) = of_kind(objects, "Deployment")
    assert policy["spec"]["podSelector"] == deployment["spec"]["selector"]
    assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    rules = policy["spec"].get("ingress", [])
    assert all(rule["ports"] == [{"port": "metrics", "protocol": "TCP"}] for rule in rules)
    allowed = [
        each["namespaceSelector"] for rule in rules for each in rule["from"] if "namespaceSelector" in each
    ]
    if not metrics:
        assert allowed == []
        return
    assert allowed == [{"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}]
    (binding,) = metrics
    assert [each["name"] for each in binding["subjects"]] == ["system:serviceaccounts:monitoring"]
    (service,) = of_kind(objects, "Service")
    assert service["spec"]["ports"] == [{"name": "metrics", "port": 8081, "targetPort": "metrics"}]
    assert service["spec"]["selector"].items() <= pod_template(objects)["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("overlay", "values"),
    [("dry-run", ""), ("enforce", "enforce-values.yaml"), ("surge", "surge-values.yaml")],
)
def test_the_chart_grants_and_runs_what_the_overlays_do(overlay: str, values: str) -> None:
    """The same rules, and the same pod but for its labels and the options that the chart spells out."""
    ours, charts = documents(overlay), parsed(templated(values))

    def rules(objects: list[Obj]) -> dict[str, Any]:
        return {each["metadata"]["name"]: each["rules"] for each in of_kind(objects, "Role", "ClusterRole")}

    def comparable(objects: list[Obj]) -> Obj:
        container = {**operator(objects)}
        del container["args"]
        container.setdefault("imagePullPolicy", "IfNotPresent")
        return {**pod_template(objects)["spec"], "containers": [container]}

    assert rules(ours) == rules(charts)
    assert comparable(ours) == comparable(charts)


def test_the_number_and_names_of_replicas_change_no_rights() -> None:
    """And one process without a lease has the same rights but for the lease."""
    leases = {(verb, "coordination.k8s.io", "leases") for verb in ("create", "get", "update")}

    assert grants("high-availability") == grants("enforce")
    assert operators_grants(of_chart("high-availability-values.yaml")) == grants("enforce")
    assert operators_grants(of_chart("alone-values.yaml")) == grants("enforce") - leases


def test_the_rights_to_allocate_devices_are_given_to_those_who_ask() -> None:
    """By the component and by the chart alike; a dry run reads what there is, and writes nothing."""
    group = "resource.k8s.io"
    read = {
        (verb, group, kind)
        for verb in ("list", "watch")
        for kind in ("deviceclasses", "resourceclaims", "resourceslices")
    }
    written = {
        *((verb, group, "resourceclaims") for verb in ("get", "create", "patch", "delete")),
        ("patch", group, "resourceclaims/status"),
        ("patch", group, "resourceclaims/binding"),
    }
    option = ("--set", "devices=true")

    assert grants_with("enforce", "devices") - grants("enforce") == read | written
    assert operators_grants(parsed(templated("enforce-values.yaml", *option))) - grants("enforce") == (
        read | written
    )
    assert operators_grants(parsed(templated("", *option))) - grants("dry-run") == read


def test_the_right_to_read_recommended_requests_is_given_to_those_who_ask() -> None:
    """By the component and by the chart alike, in a dry run too."""
    asked = {(verb, "autoscaling.k8s.io", "verticalpodautoscalers") for verb in ("list", "watch")}
    option = ("--set", "verticalPodAutoscalers=true")

    assert grants_with("dry-run", "vertical-pod-autoscalers") - grants("dry-run") == asked
    assert operators_grants(parsed(templated("", *option))) - grants("dry-run") == asked


def test_the_right_to_read_owners_of_groups_is_given_to_those_who_ask() -> None:
    """By the component and by the chart alike."""
    asked = {(verb, *reversed(each.resource.split(".", 1))) for each in OWNERS for verb in ("list", "watch")}
    option = ("--set", "automaticGroups=true")

    assert grants_with("dry-run", "automatic-groups") - grants("dry-run") == asked
    assert operators_grants(parsed(templated("", *option))) - grants("dry-run") == asked


def test_the_right_to_compare_admission_policies_is_given_to_those_who_ask() -> None:
    """By the component and by the chart alike; none may be written."""
    kinds = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
    asked = {("get", "admissionregistration.k8s.io", kind) for kind in kinds}
    option = ("--set", "adoption.enabled=true")

    assert grants_with("dry-run", "adoption") - grants("dry-run") == asked
    assert operators_grants(parsed(templated("", *option))) - grants("dry-run") == asked


def test_the_watchdog_may_withdraw_policies_and_nothing_else() -> None:
    """By the component and by the chart alike; an admission policy restricts what it may write."""
    asked = [
        {"apiGroups": ["plimsoll.dev"], "resources": ["schedulingpolicies"], "verbs": ["list"]},
        {"apiGroups": ["plimsoll.dev"], "resources": ["schedulingpolicies/status"], "verbs": ["patch"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["plimsoll"],
            "verbs": ["get"],
        },
    ]
    chart = parsed(templated("", "--set", "adoption.enabled=true"))
    for objects in (documents_with("enforce", "adoption"), chart):
        (job,) = of_kind(objects, "CronJob")
        pod = job["spec"]["jobTemplate"]["spec"]["template"]
        account = pod["spec"]["serviceAccountName"]
        bound = [
            each["roleRef"]["name"]
            for each in of_kind(objects, "RoleBinding", "ClusterRoleBinding")
            if account in [subject["name"] for subject in each["subjects"]]
        ]
        roles = [
            each for each in of_kind(objects, "ClusterRole", "Role") if each["metadata"]["name"] in bound
        ]
        rules = [rule for role in roles for rule in role["rules"]]
        assert sorted(rules, key=str) == sorted(asked, key=str)
        (guard,) = [
            each
            for each in of_kind(objects, "ValidatingAdmissionPolicy")
            if each["metadata"]["name"].endswith("only-withdrawing")
        ]
        (condition,) = guard["spec"]["matchConditions"]
        assert condition["expression"].endswith(f"'system:serviceaccount:plimsoll:{account}'")
        selector = of_kind(objects, "Deployment")[0]["spec"]["selector"]["matchLabels"]
        labels = pod["metadata"]["labels"]
        assert not selector.items() <= labels.items()  # else budget and Service would count its pods


def test_secrets_for_prometheus_are_read_by_their_names() -> None:
    """By the component and by the chart alike, in the operator's namespace; none can be listed."""
    component = list(
        yaml.safe_load_all((DEPLOY / "components/prometheus-access/reading.yaml").read_text(encoding="utf-8"))
    )
    options = ("--set", "prometheus.secrets={a,b}", "--set", "prometheus.url=https://p")
    chart = parsed(templated("", *options))
    (role,) = [each for each in of_kind(chart, "Role") if each["metadata"]["name"] == "plimsoll-prometheus"]
    right = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}

    assert grants_with("dry-run", "prometheus-access") - grants("dry-run") == {("get", "", "secrets")}
    assert operators_grants(chart) - grants("dry-run") == {("get", "", "secrets")}
    assert component[0]["rules"] == [{**right, "resourceNames": ["plimsoll-prometheus"]}]
    assert role["rules"] == [{**right, "resourceNames": ["a", "b"]}]


def test_the_projected_token_comes_with_the_only_server_that_sees_it() -> None:
    """The component and the chart mount the same; both names are those that the operator reads."""
    ours = yaml.safe_load(
        (DEPLOY / "components/prometheus-access/deployment.yaml").read_text(encoding="utf-8")
    )["spec"]
    charts = pod_template(parsed(templated("", "--set", "prometheus.url=https://p")))
    spec = ours["template"]["spec"]

    assert charts["metadata"]["annotations"] == {ADDRESSES: "https://p"}
    assert ours["template"]["metadata"]["annotations"] == {ADDRESSES: ""}
    assert charts["spec"]["volumes"] == spec["volumes"]
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert charts["spec"]["containers"][0]["volumeMounts"] == [mount]
    assert mount["mountPath"] == str(TOKEN_FOLDER)
    token, address = spec["volumes"][0]["projected"]["sources"]
    assert token["serviceAccountToken"]["path"] == "token"
    assert address["downwardAPI"]["items"][0]["path"] == "url"
    assert (
        address["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"] == f"metadata.annotations['{ADDRESSES}']"
    )


def test_the_operator_reviews_callers_only_where_it_is_asked_to() -> None:
    """By the component and by the chart alike, in a dry run, too; the role of callers is not bound."""
    reviews = {
        ("create", "authentication.k8s.io", "tokenreviews"),
        ("create", "authorization.k8s.io", "subjectaccessreviews"),
    }
    plain, chart = parsed(templated("")), parsed(templated("", "--set", "explain.enabled=true"))
    role = yaml.safe_load((DEPLOY / "components/explain/explain.yaml").read_text(encoding="utf-8"))
    (caller,) = [
        each for each in of_kind(chart, "ClusterRole") if each["metadata"]["name"] == f"{NAME}-explain"
    ]

    assert grants_with("dry-run", "explain") - grants("dry-run") == reviews
    assert operators_grants(chart) - operators_grants(plain) == reviews
    assert caller["rules"] == role["rules"] == [{"nonResourceURLs": ["/explain/*"], "verbs": ["get"]}]
    assert role["metadata"]["name"] == caller["metadata"]["name"]
    bindings = of_kind(chart, "ClusterRoleBinding", "RoleBinding")
    assert caller["metadata"]["name"] not in {each["roleRef"]["name"] for each in bindings}
    assert caller["metadata"]["name"] not in {each["metadata"]["name"] for each in plain}


def test_those_who_ask_may_read_the_lease_of_the_operator_and_no_other() -> None:
    """It names the pod that leads."""
    documents = yaml.safe_load_all((DEPLOY / "components/explain/reader.yaml").read_text(encoding="utf-8"))
    (asking,) = [each for each in documents if each["kind"] == "Role"]

    assert (asking["metadata"]["name"], asking["metadata"]["namespace"]) == ("plimsoll-asking", NAME)
    (leases,) = [rule for rule in asking["rules"] if "leases" in rule["resources"]]
    assert (leases["resourceNames"], leases["verbs"]) == (["plimsoll"], ["get"])


def test_the_control_plane_component_changes_the_place_and_nothing_else() -> None:
    """The same nodes and tolerations as the chart's controlPlane."""
    patch = yaml.safe_load((DEPLOY / "components/control-plane/deployment.yaml").read_text(encoding="utf-8"))
    chart = pod_template(parsed(templated("", "--set", "controlPlane=true")))["spec"]
    plain = pod_template(parsed(templated("")))["spec"]

    assert {key: chart[key] for key in chart.keys() - plain.keys()} == patch["spec"]["template"]["spec"]


@pytest.mark.parametrize("chart", [CHART, CRDS_CHART], ids=["plimsoll", "plimsoll-crds"])
def test_helm_finds_nothing_to_say(chart: Path) -> None:
    """As helm lint --strict judges, for each set of values."""
    for values in VALUES if chart == CHART else ("",):
        chosen = ["--values", str(CHART / "ci" / values)] if values else []
        run("helm", "lint", "--strict", "--quiet", str(chart), *chosen)


@pytest.mark.parametrize("chart", [CHART, CRDS_CHART], ids=["plimsoll", "plimsoll-crds"])
def test_the_charts_bring_the_definitions_of_this_version(chart: Path) -> None:
    """As crds/ has them, and kept when the release goes unless somebody says otherwise."""
    option = "keep=false" if chart == CRDS_CHART else "crds.keep=false"
    expected = [
        yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "crds").glob("*.yaml"))
    ]
    kept = of_kind(parsed(templated("", chart=chart)), "CustomResourceDefinition")
    dropped = of_kind(parsed(templated("", "--set", option, chart=chart)), "CustomResourceDefinition")
    about = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))

    assert dropped == expected
    assert all(each["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"} for each in kept)
    assert kept == expected
    assert about["version"] == about["appVersion"] == __version__


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("mode=enforce", "at '/mode': value must be one of 'DryRun', 'Enforce'"),
        ("replicas=-1", "at '/replicas'"),
        ("replica=2", "additional properties 'replica' not allowed"),
        ("image.digest=latest", "at '/image/digest'"),
        ("leaderElection.leaseDuration=15", "at '/leaderElection/leaseDuration': got number, want string"),
        ("replicas=2,leaderElection.enabled=false", "more than one needs leaderElection.enabled"),
        ("serviceAccount.create=false", "serviceAccount.name: say which one"),
        (
            "policies[0].name=a,policies[0].spec.rebalancing.mode=DryRun",
            "install the chart plimsoll-crds first",
        ),
    ],
)
def test_values_that_make_no_sense_are_refused_with_a_sentence(setting: str, said: str) -> None:
    """By the schema, or by the template that would have to obey."""
    command = [tool("helm"), "template", NAME, str(CHART), "--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert said in done.stderr


def test_each_value_is_described_by_the_schema() -> None:
    """And the schema describes no other."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))

    def compare(found: Obj, described: Obj, where: str) -> None:
        assert described["additionalProperties"] is False, where
        assert found.keys() == described["properties"].keys() - {"global"}, where
        for key, value in found.items():
            inner = described["properties"][key]
            if isinstance(value, dict) and value and "properties" in inner and key != "resources":
                compare(value, inner, f"{where}.{key}")

    compare(values, schema, "values")


def test_policies_of_the_release_are_rendered_where_they_are_served(tmp_path: Path) -> None:
    """With a cluster that has the kind, as GitOps tools tell helm."""
    values = tmp_path / "values.yaml"
    spec = {"scheduling": {"schedulerName": "plimsoll"}}
    values.write_text(yaml.safe_dump({"policies": [{"name": "scheduler", "spec": spec}]}), encoding="utf-8")
    served = "--api-versions=plimsoll.dev/v1alpha1/SchedulingPolicy"

    (policy,) = of_kind(parsed(templated("", served, "--values", str(values))), "SchedulingPolicy")

    assert (policy["metadata"]["name"], policy["spec"]) == ("scheduler", spec)


def test_the_helm_test_tells_a_ready_operator_from_one_that_is_not() -> None:
    """The script of its pod, run against servers that answer, and that do not."""
    (pod,) = of_kind(parsed(templated("")), "Pod")
    (container,) = pod["spec"]["containers"]
    python, dash_c, script, url = container["command"]
    assert (python, dash_c) == ("python", "-c")
    assert url == f"http://{NAME}-metrics.{NAME}:8081/readyz"
    serving = (
        "import http.server, threading;"
        "h = type('H', (http.server.BaseHTTPRequestHandler,),"
        " {'do_GET': lambda s: (s.send_response(STATUS), s.end_headers(), s.wfile.write(b'ok'))[0]});"
        "s = http.server.HTTPServer(('127.0.0.1', 0), h); print(s.server_port, flush=True); s.serve_forever()"
    )

    def asked(status: int) -> int:
        command = [sys.executable, "-c", serving.replace("STATUS", str(status))]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as server:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            short = script.replace("monotonic() + 60", "monotonic() + 1")
            assert short != script
            done = subprocess.run(
                [sys.executable, "-c", short, f"http://127.0.0.1:{port}/readyz"],
                capture_output=True,
                check=False,
            )
            server.kill()
        return done.returncode

    assert asked(200) == 0
    assert asked(503) == 1


def test_audit_log_and_notices_have_their_options_and_volumes() -> None:
    """A volume that the operator's group may write, and a token from a Secret."""
    options = (
        "clusterName=west,auditLog.target=volume,auditLog.existingClaim=audit,"
        "notify.url=https://events.example/plimsoll,notify.tokenSecret=events,rbac.tenants=true"
    )
    objects = parsed(templated("", "--set", options))

    spec = pod_template(objects)["spec"]
    args = spec["containers"][0]["args"]
    assert {
        "--cluster-name=west",
        "--audit-log=/var/lib/plimsoll/audit/evictions.jsonl",
        "--notify-url=https://events.example/plimsoll",
        "--notify-token-file=/var/run/secrets/plimsoll.dev/notify/token",
    } <= set(args)
    mounted = {each["name"] for each in spec["containers"][0]["volumeMounts"]}
    assert mounted == {each["name"] for each in spec["volumes"]} == {"audit", "notify-token"}
    assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsGroup"]
    roles = {each["metadata"]["name"]: each for each in of_kind(objects, "ClusterRole")}
    (edit,) = (role for name, role in roles.items() if name.endswith("-edit"))
    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert edit["rules"] == [
        {
            "apiGroups": ["plimsoll.dev"],
            "resources": ["rebalancingrules"],
            "verbs": ["create", "delete", "deletecollection", "patch", "update"],
        }
    ]
