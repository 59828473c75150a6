"""Declares the variables and functions that an expression about a device may use.

The library provides the language itself, its macros, optional values, ``cel.bind``, ``sets`` and ``lists``.
Declared here are the string functions of the version that Kubernetes has, Kubernetes' own additions, and the
comparisons, which Kubernetes allows between numbers of different types.

Source: Kubernetes v1.36, ``apiserver/pkg/cel/library`` and ``environment/base.go``; cel-go ``ext/strings.go``
version 2.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

EXTENSIONS = ("optional", "bindings", "two-var-comprehensions", "sets", "lists")

DEVICE = {
    "device.driver": "string",
    "device.attributes": "map<string, map<string, dyn>>",
    "device.capacity": "map<string, map<string, kubernetes.Quantity>>",
    "device.allowMultipleAllocations": "bool",
}
"""The fields of a device: variables with qualified names, so that the checker knows their types."""

NAMED_FORMATS = (
    *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName"),
    *("dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix", "labelValue"),
    *("uri", "uuid", "byte", "date", "datetime"),
)
_NUMBERS = ("int", "uint", "double")
_ORDERED = ("bool", "string", "bytes", "google.protobuf.Timestamp", "google.protobuf.Duration")
COMPARISONS = ("_<_", "_<=_", "_>_", "_>=_")

FUNCTIONS: tuple[tuple[str, str, str], ...] = (
    # Strings.
    ("charAt", "string.charAt(int)", "string"),
    ("indexOf", "string.indexOf(string)", "int"),
    ("indexOf", "string.indexOf(string, int)", "int"),
    ("lastIndexOf", "string.lastIndexOf(string)", "int"),
    ("lastIndexOf", "string.lastIndexOf(string, int)", "int"),
    ("join", "list<string>.join()", "string"),
    ("join", "list<string>.join(string)", "string"),
    ("lowerAscii", "string.lowerAscii()", "string"),
    ("upperAscii", "string.upperAscii()", "string"),
    ("replace", "string.replace(string, string)", "string"),
    ("replace", "string.replace(string, string, int)", "string"),
    ("split", "string.split(string)", "list<string>"),
    ("split", "string.split(string, int)", "list<string>"),
    ("substring", "string.substring(int)", "string"),
    ("substring", "string.substring(int, int)", "string"),
    ("trim", "string.trim()", "string"),
    ("format", "string.format(list<dyn>)", "string"),
    ("strings.quote", "strings\\.quote(string)", "string"),
    # Regular expressions.
    ("find", "string.find(string)", "string"),
    ("findAll", "string.findAll(string)", "list<string>"),
    ("findAll", "string.findAll(string, int)", "list<string>"),
    # Lists.
    ("indexOf", "list<~A>.indexOf(~A)", "int"),
    ("lastIndexOf", "list<~A>.lastIndexOf(~A)", "int"),
    *((name, f"list<{kind}>.{name}()", kind) for kind in (*_NUMBERS, *_ORDERED) for name in ("min", "max")),
    *(("isSorted", f"list<{kind}>.isSorted()", "bool") for kind in (*_NUMBERS, *_ORDERED)),
    *(("sum", f"list<{kind}>.sum()", kind) for kind in (*_NUMBERS, "google.protobuf.Duration")),
    # Quantities and versions.
    ("quantity", "quantity(string)", "kubernetes.Quantity"),
    ("isQuantity", "isQuantity(string)", "bool"),
    ("sign", "sign(kubernetes.Quantity)", "int"),
    ("isInteger", "kubernetes.Quantity.isInteger()", "bool"),
    ("asInteger", "kubernetes.Quantity.asInteger()", "int"),
    ("asApproximateFloat", "kubernetes.Quantity.asApproximateFloat()", "double"),
    *(
        (name, f"kubernetes.Quantity.{name}({other})", "kubernetes.Quantity")
        for name in ("add", "sub")
        for other in ("kubernetes.Quantity", "int")
    ),
    ("semver", "semver(string)", "kubernetes.Semver"),
    ("semver", "semver(string, bool)", "kubernetes.Semver"),
    ("isSemver", "isSemver(string)", "bool"),
    ("isSemver", "isSemver(string, bool)", "bool"),
    *((name, f"kubernetes.Semver.{name}()", "int") for name in ("major", "minor", "patch")),
    *(
        (name, f"{kind}.{name}({kind})", result)
        for kind in ("kubernetes.Quantity", "kubernetes.Semver")
        for name, result in (("compareTo", "int"), ("isGreaterThan", "bool"), ("isLessThan", "bool"))
    ),
    # URLs and addresses.
    ("url", "url(string)", "kubernetes.URL"),
    ("isURL", "isURL(string)", "bool"),
    *(
        (name, f"kubernetes.URL.{name}()", "string")
        for name in ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath")
    ),
    ("getQuery", "kubernetes.URL.getQuery()", "map<string, list<string>>"),
    ("ip", "ip(string)", "net.IP"),
    ("ip", "net.CIDR.ip()", "net.IP"),
    ("isIP", "isIP(string)", "bool"),
    ("ip.isCanonical", "ip\\.isCanonical(string)", "bool"),
    ("family", "net.IP.family()", "int"),
    *(
        (name, f"net.IP.{name}()", "bool")
        for name in (
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
        )
    ),
    ("cidr", "cidr(string)", "net.CIDR"),
    ("isCIDR", "isCIDR(string)", "bool"),
    ("containsIP", "net.CIDR.containsIP(string)", "bool"),
    ("containsIP", "net.CIDR.containsIP(net.IP)", "bool"),
    ("containsCIDR", "net.CIDR.containsCIDR(string)", "bool"),
    ("containsCIDR", "net.CIDR.containsCIDR(net.CIDR)", "bool"),
    ("prefixLength", "net.CIDR.prefixLength()", "int"),
    ("masked", "net.CIDR.masked()", "net.CIDR"),
    *(("string", f"string({kind})", "string") for kind in (*_NUMBERS, *_ORDERED, "net.IP", "net.CIDR")),
    # Named formats.
    ("format.named", "format\\.named(string)", "optional_type<kubernetes.NamedFormat>"),
    ("validate", "kubernetes.NamedFormat.validate(string)", "optional_type<list<string>>"),
)
"""Function, signature, type of the result."""


def environment() -> str:
    """The configuration of the checker: a YAML document in JSON syntax."""
    overloads: dict[str, list[dict[str, str]]] = {}
    for name, signature, result in (*FUNCTIONS, *_comparisons(), *_formats()):
        found = overloads.setdefault(name, [])
        found.append({"id": f"{name}_{len(found)}", "signature": signature, "return": result})
    return json.dumps(
        {
            "name": "device",
            "stdlib": {"exclude_functions": [{"name": name} for name in (*COMPARISONS, "string")]},
            "extensions": [{"name": name} for name in EXTENSIONS],
            "functions": [{"name": name, "overloads": found} for name, found in overloads.items()],
        }
    )


def _comparisons() -> Iterator[tuple[str, str, str]]:
    for name in COMPARISONS:
        escaped = name.replace("<", "\\<").replace(">", "\\>")
        pairs = [(left, right) for left in _NUMBERS for right in _NUMBERS]
        pairs += [(kind, kind) for kind in _ORDERED]
        for left, right in pairs:
            yield name, f"{escaped}({left}, {right})", "bool"


def _formats() -> Iterator[tuple[str, str, str]]:
    for name in NAMED_FORMATS:
        yield f"format.{name}", f"format\\.{name}()", "kubernetes.NamedFormat"
