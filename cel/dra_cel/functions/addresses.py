"""URLs, IP addresses and networks as values of expressions.

Source: Kubernetes v1.36, ``apiserver/pkg/cel/library``: ``urls.go``, ``ip.go``, ``cidr.go``.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias
from urllib.parse import SplitResult, parse_qs, urlsplit

from dra_cel.functions.table import FunctionTable
from dra_cel.values import EvaluationError, OpaqueValue, parsing, traversal

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_PREFIX = re.compile(r"0|[1-9][0-9]{0,2}")
Interface: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True, slots=True)
class Url(OpaqueValue):
    """An absolute URL, or an absolute path."""

    cel_type: ClassVar[str] = "kubernetes.URL"
    parts: SplitResult


@dataclass(frozen=True, slots=True)
class Ip(OpaqueValue):
    """An address of IPv4 or IPv6."""

    cel_type: ClassVar[str] = "net.IP"
    address: Address


@dataclass(frozen=True, slots=True)
class Cidr(OpaqueValue):
    """An address with the length of its network's prefix."""

    cel_type: ClassVar[str] = "net.CIDR"
    interface: Interface


def _url(text: str) -> Url:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {text[:64]!r}") from error
    if not (parts.scheme or text.startswith("/")) or any(ord(letter) < 33 for letter in text):
        raise EvaluationError(f"URL parse error during conversion from string: {text[:64]!r}")
    return Url(parts)


def _address(text: str) -> Address:
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id or address.ipv4_mapped):
        raise ValueError(text)
    return address


def _ip(text: str) -> Ip:
    try:
        return Ip(_address(text))
    except ValueError as error:
        raise EvaluationError(
            f"IP Address {text[:64]!r} parse error during conversion from string"
        ) from error


def _cidr(text: str) -> Cidr:
    before, _, length = text.partition("/")
    fault = f"network address parse error during conversion from string: {text[:64]!r}"
    if not _PREFIX.fullmatch(length):
        raise EvaluationError(fault)
    try:
        return Cidr(ipaddress.ip_interface(f"{_address(before)}/{length}"))
    except ValueError as error:
        raise EvaluationError(fault) from error


def _is(parse: Any, text: str) -> bool:
    try:
        parse(text)
    except EvaluationError:
        return False
    return True


def _contains(outer: Cidr, inner: Interface) -> bool:
    network, other = outer.interface.network, inner.network
    return network.version == other.version and other.prefixlen >= network.prefixlen and inner.ip in network


def _port(url: Url) -> str:
    return "" if url.parts.port is None else str(url.parts.port)


def _query(url: Url) -> dict[str, list[str]]:
    return parse_qs(url.parts.query, keep_blank_values=True)


def _url_cost(url: Url) -> int:
    return parsing(url.parts.netloc) + parsing(url.parts.query) - 1


def _text_cost(text: str) -> int:
    return traversal(len(text))


def _address_cost(outer: Cidr, _: Any) -> int:
    return 2 + outer.interface.max_prefixlen // 32


def _parse_cost(outer: Cidr, text: str) -> int:
    return _address_cost(outer, text) + traversal(len(text))


TABLE = FunctionTable()
TABLE.add("url", (str,), _url, _text_cost)
TABLE.add("isURL", (str,), lambda text: _is(_url, text), _text_cost)
TABLE.add("getScheme", (Url,), lambda url: url.parts.scheme, _url_cost)
TABLE.add("getHost", (Url,), lambda url: url.parts.netloc.rpartition("@")[2], _url_cost)
TABLE.add("getHostname", (Url,), lambda url: url.parts.hostname or "", _url_cost)
TABLE.add("getPort", (Url,), _port, _url_cost)
TABLE.add("getEscapedPath", (Url,), lambda url: url.parts.path)
TABLE.add("getQuery", (Url,), _query, _url_cost)
TABLE.add("ip", (str,), _ip, _text_cost)
TABLE.add("isIP", (str,), lambda text: _is(_ip, text), _text_cost)
TABLE.add(
    "ip.isCanonical",
    (str,),
    lambda text: str(_ip(text).address) == text,
    lambda text: traversal(2 * len(text)),
)
TABLE.add("family", (Ip,), lambda ip: ip.address.version)
TABLE.add("isUnspecified", (Ip,), lambda ip: ip.address.is_unspecified)
TABLE.add("isLoopback", (Ip,), lambda ip: ip.address.is_loopback)
TABLE.add("isLinkLocalMulticast", (Ip,), lambda ip: _is_local_multicast(ip.address))
TABLE.add("isLinkLocalUnicast", (Ip,), lambda ip: ip.address.is_link_local)
TABLE.add("isGlobalUnicast", (Ip,), lambda ip: _is_global_unicast(ip.address))
TABLE.add("string", (Ip,), lambda ip: str(ip.address))
TABLE.add("cidr", (str,), _cidr, _text_cost)
TABLE.add("isCIDR", (str,), lambda text: _is(_cidr, text), _text_cost)
TABLE.add("ip", (Cidr,), lambda cidr: Ip(cidr.interface.ip))
TABLE.add("containsIP", (Cidr, Ip), lambda cidr, ip: ip.address in cidr.interface.network, _address_cost)
TABLE.add("containsIP", (Cidr, str), lambda cidr, ip: _ip(ip).address in cidr.interface.network, _parse_cost)
TABLE.add("containsCIDR", (Cidr, Cidr), lambda cidr, other: _contains(cidr, other.interface), _address_cost)
TABLE.add(
    "containsCIDR", (Cidr, str), lambda cidr, other: _contains(cidr, _cidr(other).interface), _parse_cost
)
TABLE.add("prefixLength", (Cidr,), lambda cidr: cidr.interface.network.prefixlen)
TABLE.add("masked", (Cidr,), lambda cidr: Cidr(ipaddress.ip_interface(str(cidr.interface.network))))
TABLE.add("string", (Cidr,), lambda cidr: str(cidr.interface))


def _is_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.is_multicast and address.packed[1] & 15 == 2


def _is_global_unicast(address: Address) -> bool:
    broadcast = ipaddress.IPv4Address("255.255.255.255")
    return not (
        address == broadcast
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )
