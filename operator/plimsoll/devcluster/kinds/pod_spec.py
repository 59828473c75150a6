"""Defaults and checks of a pod's spec, in pods and in the templates of workloads.

Longer than most modules: one function for each part of a pod that is checked.

Source: Kubernetes v1.36 ``pkg/apis/core/v1/defaults.go`` and ``pkg/apis/core/validation/validation.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.devcluster import quantity_forms
from plimsoll.devcluster.kinds.checks import (
    duplicate,
    forbidden,
    invalid,
    label_selector,
    missing,
    one_of,
    required,
)
from plimsoll.devcluster.kinds.metadata import (
    label_causes,
    label_faults,
    label_value_faults,
    qualified_name_faults,
    subdomain_faults,
)

if TYPE_CHECKING:
    from plimsoll.devcluster.resources import Obj
    from plimsoll.devcluster.statuses import Cause

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MODES = {
    "secret": "defaultMode",
    "configMap": "defaultMode",
    "projected": "defaultMode",
    "downwardAPI": "defaultMode",
}
_FILE_MODE = 0o644


def default_spec(spec: Obj) -> None:
    """Fill in what a pod's spec leaves out."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if "terminationGracePeriodSeconds" not in spec:
        spec["terminationGracePeriodSeconds"] = 30
    host = spec.get("hostNetwork", False)
    for name in ("initContainers", "containers"):
        for container in spec.get(name) or ():
            _default_container(container, host=host)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _default_container(container: Obj, *, host: bool) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        tag = container.get("image", "").rpartition("/")[2].partition("@")[0].partition(":")[2]
        latest = tag in ("", "latest") and "@" not in container.get("image", "")
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host and "hostPort" not in port and "containerPort" in port:
            port["hostPort"] = port["containerPort"]
    for name in _PROBES:
        if probe := container.get(name):
            probe.setdefault("timeoutSeconds", 1)
            probe.setdefault("periodSeconds", 10)
            probe.setdefault("successThreshold", 1)
            probe.setdefault("failureThreshold", 3)
            if http := probe.get("httpGet"):
                http.setdefault("path", "/")
                http.setdefault("scheme", "HTTP")
    for variable in container.get("env") or ():
        if reference := (variable.get("valueFrom") or {}).get("fieldRef"):
            reference.setdefault("apiVersion", "v1")


def _default_volume(volume: Obj) -> None:
    if len(volume) <= 1:
        volume["emptyDir"] = {}
    for source, field in _MODES.items():
        if source in volume:
            volume[source].setdefault(field, _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")


def default_requests(spec: Obj) -> None:
    """Let limits be requests where no request is given; only pods do so, templates do not."""
    for name in ("initContainers", "containers"):
        for container in spec.get(name) or ():
            _limits_to_requests(container["resources"])
    if spec.get("resources"):
        _limits_to_requests(spec["resources"])


def _limits_to_requests(resources: Obj) -> None:
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


# -- checks --------------------------------------------------------------------------------------------------

_NATIVE = ("cpu", "memory", "ephemeral-storage", "storage")


def spec_causes(spec: Obj, at: str = "spec") -> list[Cause]:
    """What is wrong with a pod's spec."""
    causes: list[Cause] = []
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    causes += _volume_causes(spec, at)
    if not spec.get("containers"):
        causes.append(required(f"{at}.containers"))
    names: set[str] = set()
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            causes += _container_causes(container, f"{at}.{kind}[{index}]", names, volumes)
    causes += one_of(f"{at}.restartPolicy", spec.get("restartPolicy"), ("Always", "OnFailure", "Never"))
    dns = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    causes += one_of(f"{at}.dnsPolicy", spec.get("dnsPolicy"), dns)
    if spec.get("resources"):
        causes += resource_causes(spec["resources"], f"{at}.resources")
    causes += label_causes(spec.get("nodeSelector"), f"{at}.nodeSelector")
    causes += toleration_causes(spec.get("tolerations") or [], f"{at}.tolerations")
    causes += _spread_causes(spec.get("topologySpreadConstraints") or [], f"{at}.topologySpreadConstraints")
    causes += _affinity_causes(spec.get("affinity") or {}, f"{at}.affinity")
    causes += _gate_causes(spec, at)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        causes.append(
            invalid(f"{at}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
        )
    for field in ("nodeName", "schedulerName", "priorityClassName", "runtimeClassName"):
        if spec.get(field):
            causes += [
                invalid(f"{at}.{field}", spec[field], fault) for fault in subdomain_faults(spec[field])
            ]
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            causes += [invalid(f"{at}.{field}", spec[field], fault) for fault in label_faults(spec[field])]
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        causes += one_of(f"{at}.preemptionPolicy", policy, ("Never", "PreemptLowerPriority"))
    return causes


def _volume_causes(spec: Obj, at: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        here, name = f"{at}.volumes[{index}]", volume.get("name", "")
        if not name:
            causes.append(required(f"{here}.name"))
        else:
            causes += [invalid(f"{here}.name", name, fault) for fault in label_faults(name)]
        if name in seen:
            causes.append(duplicate(f"{here}.name", name))
        seen.add(name)
        sources = [key for key in volume if key != "name"]
        if len(sources) > 1:
            causes.append(
                forbidden(f"{here}.{sorted(sources)[1]}", "may not specify more than 1 volume type")
            )
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            causes.append(required(f"{here}.persistentVolumeClaim.claimName"))
    return causes


def _container_causes(container: Obj, at: str, names: set[str], volumes: set[Any]) -> list[Cause]:
    causes: list[Cause] = []
    name = container.get("name", "")
    if not name:
        causes.append(required(f"{at}.name"))
    else:
        causes += [invalid(f"{at}.name", name, fault) for fault in label_faults(name)]
        if name in names:
            causes.append(duplicate(f"{at}.name", name))
        names.add(name)
    image = container.get("image", "")
    if not image:
        causes.append(required(f"{at}.image"))
    elif image != image.strip():
        causes.append(invalid(f"{at}.image", image, "must not have leading or trailing whitespace"))
    causes += one_of(
        f"{at}.imagePullPolicy", container.get("imagePullPolicy"), ("Always", "IfNotPresent", "Never")
    )
    causes += resource_causes(container.get("resources") or {}, f"{at}.resources")
    for index, port in enumerate(container.get("ports") or ()):
        causes += _port_causes(port, f"{at}.ports[{index}]")
    for index, variable in enumerate(container.get("env") or ()):
        if not variable.get("name"):
            causes.append(required(f"{at}.env[{index}].name"))
    paths: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        here = f"{at}.volumeMounts[{index}]"
        if not mount.get("name"):
            causes.append(required(f"{here}.name"))
        elif mount["name"] not in volumes:
            causes.append(missing(f"{here}.name", mount["name"]))
        path = mount.get("mountPath", "")
        if not path:
            causes.append(required(f"{here}.mountPath"))
        elif path in paths:
            causes.append(invalid(f"{here}.mountPath", path, "must be unique"))
        paths.add(path)
    return causes


def _port_causes(port: Obj, at: str) -> list[Cause]:
    causes: list[Cause] = []
    number = port.get("containerPort")
    if not number:
        causes.append(required(f"{at}.containerPort"))
    elif not 0 < number < 65536:
        causes.append(invalid(f"{at}.containerPort", number, "must be between 1 and 65535, inclusive"))
    if not 0 <= port.get("hostPort", 0) < 65536:
        causes.append(invalid(f"{at}.hostPort", port["hostPort"], "must be between 1 and 65535, inclusive"))
    return causes + one_of(f"{at}.protocol", port.get("protocol"), ("TCP", "UDP", "SCTP"))


def resource_causes(resources: Obj, at: str) -> list[Cause]:
    """What is wrong with requests and limits."""
    causes: list[Cause] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            here, amount = f"{at}.{kind}[{name}]", quantity_forms.value(text)
            causes += [invalid(here, name, fault) for fault in qualified_name_faults(name)]
            if amount < 0:
                causes.append(invalid(here, text, "must be greater than or equal to 0"))
            if is_extended(name) and amount % 1:
                causes.append(invalid(here, text, "must be an integer"))
    for name, text in requests.items():
        if name in limits:
            over = quantity_forms.value(text) > quantity_forms.value(limits[name])
            if over:
                told = f"must be less than or equal to {name} limit of {limits[name]}"
                causes.append(invalid(f"{at}.requests", text, told))
            elif is_extended(name) and quantity_forms.value(text) != quantity_forms.value(limits[name]):
                told = f"must be equal to {name} limit of {limits[name]}"
                causes.append(invalid(f"{at}.requests", text, told))
        elif is_extended(name):
            causes.append(required(f"{at}.limits", "Limit must be set for non overcommitable resources"))
    return causes


def is_extended(name: str) -> bool:
    """Whether a resource is one that a device plugin offers: whole, and never over-committed."""
    if name.startswith("hugepages-"):
        return True
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io") and name not in _NATIVE


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def toleration_causes(tolerations: list[Obj], at: str) -> list[Cause]:
    """What is wrong with tolerations."""
    causes: list[Cause] = []
    for index, one in enumerate(tolerations):
        here = f"{at}[{index}]"
        key, operator = one.get("key", ""), one.get("operator", "")
        if key:
            causes += [invalid(f"{here}.key", key, fault) for fault in qualified_name_faults(key)]
        elif operator != "Exists":
            told = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            causes.append(invalid(f"{here}.operator", operator, told))
        if "tolerationSeconds" in one and one.get("effect") != "NoExecute":
            told = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(invalid(f"{here}.effect", one.get("effect", ""), told))
        if operator in ("", "Equal"):
            causes += [
                invalid(f"{here}.operator", one.get("value", ""), fault)
                for fault in label_value_faults(one.get("value", ""))
            ]
        elif operator == "Exists":
            if one.get("value"):
                told = "value must be empty when `operator` is 'Exists'"
                causes.append(invalid(f"{here}.operator", one["value"], told))
        else:
            causes += one_of(f"{here}.operator", operator, ("Equal", "Exists"))
        if one.get("effect"):
            causes += one_of(f"{here}.effect", one["effect"], _EFFECTS)
    return causes


def _spread_causes(constraints: list[Obj], at: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(constraints):
        here = f"{at}[{index}]"
        skew = one.get("maxSkew", 0)
        if skew <= 0:
            causes.append(invalid(f"{here}.maxSkew", skew, "must be greater than zero"))
        key, action = one.get("topologyKey", ""), one.get("whenUnsatisfiable", "")
        if not key:
            causes.append(required(f"{here}.topologyKey", "can not be empty"))
        else:
            causes += [invalid(f"{here}.topologyKey", key, fault) for fault in qualified_name_faults(key)]
        causes += one_of(f"{here}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        if (key, action) in seen:
            causes.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        seen.add((key, action))
        domains = one.get("minDomains")
        if domains is not None:
            if domains <= 0:
                causes.append(invalid(f"{here}.minDomains", domains, "must be greater than zero"))
            if action != "DoNotSchedule":
                told = f'can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "{action}"'
                causes.append(invalid(f"{here}.minDomains", domains, told))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if one.get(field):
                causes += one_of(f"{here}.{field}", one[field], ("Honor", "Ignore"))
        causes += label_selector(one.get("labelSelector"), f"{here}.labelSelector")
    return causes


_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def node_selector_causes(selector: Obj, at: str) -> list[Cause]:
    """What is wrong with a required node selector."""
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        return [required(f"{at}.nodeSelectorTerms", "must have at least one node selector term")]
    return [
        cause
        for index, term in enumerate(terms)
        for cause in _term_causes(term, f"{at}.nodeSelectorTerms[{index}]")
    ]


def _term_causes(term: Obj, at: str) -> list[Cause]:
    causes: list[Cause] = []
    for kind in ("matchExpressions", "matchFields"):
        for index, one in enumerate(term.get(kind) or ()):
            here = f"{at}.{kind}[{index}]"
            operator, values = one.get("operator", ""), one.get("values") or []
            if operator not in _NODE_OPERATORS:
                causes.append(invalid(f"{here}.operator", operator, "not a valid selector operator"))
            elif operator in ("In", "NotIn") and not values:
                causes.append(
                    required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
                )
            elif operator in ("Exists", "DoesNotExist") and values:
                told = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                causes.append(forbidden(f"{here}.values", told))
            elif operator in ("Gt", "Lt") and len(values) != 1:
                told = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                causes.append(required(f"{here}.values", told))
            key = one.get("key", "")
            if kind == "matchFields":
                if key != "metadata.name":
                    causes.append(invalid(f"{here}.key", key, "not a valid field selector key"))
            else:
                causes += [invalid(f"{here}.key", key, fault) for fault in qualified_name_faults(key)]
    return causes


def _affinity_causes(affinity: Obj, at: str) -> list[Cause]:
    causes: list[Cause] = []
    node = affinity.get("nodeAffinity") or {}
    here = f"{at}.nodeAffinity"
    if node.get(_REQUIRED) is not None:
        causes += node_selector_causes(node[_REQUIRED], f"{here}.{_REQUIRED}")
    for index, one in enumerate(node.get(_PREFERRED) or ()):
        causes += _weight_causes(one, f"{here}.{_PREFERRED}[{index}]")
        causes += _term_causes(one.get("preference") or {}, f"{here}.{_PREFERRED}[{index}].preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind) or {}
        here = f"{at}.{kind}"
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            causes += _pod_term_causes(term, f"{here}.{_REQUIRED}[{index}]")
        for index, one in enumerate(pods.get(_PREFERRED) or ()):
            causes += _weight_causes(one, f"{here}.{_PREFERRED}[{index}]")
            causes += _pod_term_causes(
                one.get("podAffinityTerm") or {}, f"{here}.{_PREFERRED}[{index}].podAffinityTerm"
            )
    return causes


def _weight_causes(term: Obj, at: str) -> list[Cause]:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{at}.weight", weight, "must be in the range 1-100")]


def _pod_term_causes(term: Obj, at: str) -> list[Cause]:
    causes = label_selector(term.get("labelSelector"), f"{at}.labelSelector")
    causes += label_selector(term.get("namespaceSelector"), f"{at}.namespaceSelector")
    key = term.get("topologyKey", "")
    if not key:
        return [*causes, required(f"{at}.topologyKey", "can not be empty")]
    return causes + [invalid(f"{at}.topologyKey", key, fault) for fault in qualified_name_faults(key)]


def _gate_causes(spec: Obj, at: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name", "")
        causes += [
            invalid(f"{at}.schedulingGates[{index}]", name, fault) for fault in qualified_name_faults(name)
        ]
        if name in seen:
            causes.append(duplicate(f"{at}.schedulingGates[{index}]", name))
        seen.add(name)
    if seen and spec.get("nodeName"):
        causes.append(
            forbidden(f"{at}.nodeName", "cannot be set until all schedulingGates have been cleared")
        )
    return causes
