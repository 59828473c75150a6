"""Implements the functions that the API server adds to the Common Expression Language.

Quantities, URLs, addresses and networks are opaque types for the checker. The evaluator cannot carry Python
objects, so at run time each is a map that holds its text; equal maps are equal values, because the text is
normalised.

Source: apiserver v1.36 ``pkg/cel/library`` (lists, regex, urls, quantity, ip, cidr) and cel-go ``ext/sets``.
Missing: indexOf of lists (the string library has the name), format, semver, comprehensions of two variables;
``admission.authorizer`` adds its own.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from cel_expr_python import cel

from roadstead.schemas.patterns import compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_INT, _DOUBLE, _BOOL, _STRING, _DYN = (
    cel.Type.INT,
    cel.Type.DOUBLE,
    cel.Type.BOOL,
    cel.Type.STRING,
    cel.Type.DYN,
)
_QUANTITY, _URL, _IP, _CIDR = map(
    cel.Type.AbstractType, ("kubernetes.Quantity", "kubernetes.URL", "net.IP", "net.CIDR")
)
_LIST = cel.Type.List(_DYN)
_STRINGS = cel.Type.List(_STRING)
Opaque = dict[str, str]

# -- quantities ----------------------------------------------------------------------------------------------

_QUANTITY_TEXT = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d+))?", re.ASCII
)
_SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
_SUFFIXES |= {sign: Fraction(1000**power) for power, sign in enumerate("kMGTPE", start=1)}
_SUFFIXES |= {f"{sign}i": Fraction(1024**power) for power, sign in enumerate("KMGTPE", start=1)}


def _amount(text: str) -> Fraction | None:
    found = _QUANTITY_TEXT.fullmatch(text)
    if found is None:
        return None
    factor = _SUFFIXES.get(found[2], Fraction(1)) * Fraction(10) ** int(found[3] or 0)
    return Fraction(found[1]) * factor


def _quantity(text: str) -> Opaque:
    amount = _amount(text)
    if amount is None:
        raise ValueError(f"quantities must match the regular expression of quantities: {text!r}")
    return {"quantity": str(amount)}


def _of(quantity: Opaque) -> Fraction:
    return Fraction(quantity["quantity"])


def _as_integer(quantity: Opaque) -> int:
    amount = _of(quantity)
    if amount.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)


def _operand(other: Opaque | int) -> Fraction:
    return Fraction(other) if isinstance(other, int) else _of(other)


def _sum_of(left: Opaque, right: Opaque | int) -> Opaque:
    return {"quantity": str(_of(left) + _operand(right))}


def _difference_of(left: Opaque, right: Opaque | int) -> Opaque:
    return {"quantity": str(_of(left) - _operand(right))}


# -- URLs, addresses, networks -------------------------------------------------------------------------------


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _url(text: str) -> Opaque:
    if not _is_url(text):
        raise ValueError(f"URL parse error during conversion from string: {text!r}")
    return {"url": text}


def _port(url: Opaque) -> str:
    port = urlsplit(url["url"]).port
    return "" if port is None else str(port)


def _host(url: Opaque) -> str:
    return urlsplit(url["url"]).netloc.rpartition("@")[2]


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ValueError:
        return None


def _ip(text: str) -> Opaque:
    return {"ip": str(ipaddress.ip_address(text))}


def _cidr(text: str) -> Opaque:
    if "/" not in text:
        raise ValueError(f"network address parse error during conversion from string: {text!r}")
    return {"cidr": str(ipaddress.ip_interface(text))}


def _address(ip: Opaque) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(ip["ip"])


def _network(cidr: Opaque) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_interface(cidr["cidr"]).network


def _holds(outer: Opaque, inner: str) -> bool:
    network, other = _network(outer), ipaddress.ip_interface(inner).network
    return network.version == other.version and bool(network.supernet_of(other))  # type: ignore[arg-type]


# -- lists ---------------------------------------------------------------------------------------------------


def _is_sorted(items: list[Any]) -> bool:
    return all(left <= right for left, right in itertools.pairwise(items))


def _least(items: list[Any]) -> Any:
    if not items:
        raise ValueError("min called on empty list")
    return min(items)


def _greatest(items: list[Any]) -> Any:
    if not items:
        raise ValueError("max called on empty list")
    return max(items)


def _contains(outer: list[Any], inner: list[Any]) -> bool:
    return all(item in outer for item in inner)


def _found(text: str, pattern: str) -> str:
    found = compiled(pattern).search(text)
    return found[0] if found else ""


def _all_found(text: str, pattern: str, most: int = -1) -> list[str]:
    found = [one[0] for one in compiled(pattern).finditer(text)]
    return found if most < 0 else found[:most]


# -- the table -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function:
    """One overload: its types for the checker and its implementation."""

    name: str
    result: cel.Type
    parameters: tuple[cel.Type, ...]
    does: Callable[..., Any]
    member: bool = True


def _free(name: str, result: cel.Type, parameter: cel.Type, does: Callable[..., Any]) -> Function:
    return Function(name, result, (parameter,), does, member=False)


_COMPARED = (_INT, _DOUBLE, _BOOL, _STRING, cel.Type.DURATION, cel.Type.TIMESTAMP)
_SUMMED = (_INT, _DOUBLE)

FUNCTIONS: tuple[Function, ...] = (
    _free("isQuantity", _BOOL, _STRING, lambda text: _amount(text) is not None),
    _free("quantity", _QUANTITY, _STRING, _quantity),
    Function("isInteger", _BOOL, (_QUANTITY,), lambda quantity: _of(quantity).denominator == 1),
    Function("asInteger", _INT, (_QUANTITY,), _as_integer),
    Function("asApproximateFloat", _DOUBLE, (_QUANTITY,), lambda quantity: float(_of(quantity))),
    Function("sign", _INT, (_QUANTITY,), lambda quantity: _sign(_of(quantity))),
    Function("isGreaterThan", _BOOL, (_QUANTITY, _QUANTITY), lambda a, b: _of(a) > _of(b)),
    Function("isLessThan", _BOOL, (_QUANTITY, _QUANTITY), lambda a, b: _of(a) < _of(b)),
    Function("compareTo", _INT, (_QUANTITY, _QUANTITY), lambda a, b: _sign(_of(a) - _of(b))),
    Function("add", _QUANTITY, (_QUANTITY, _QUANTITY), _sum_of),
    Function("add", _QUANTITY, (_QUANTITY, _INT), _sum_of),
    Function("sub", _QUANTITY, (_QUANTITY, _QUANTITY), _difference_of),
    Function("sub", _QUANTITY, (_QUANTITY, _INT), _difference_of),
    _free("isURL", _BOOL, _STRING, _is_url),
    _free("url", _URL, _STRING, _url),
    Function("getScheme", _STRING, (_URL,), lambda url: urlsplit(url["url"]).scheme),
    Function("getHost", _STRING, (_URL,), _host),
    Function("getHostname", _STRING, (_URL,), lambda url: urlsplit(url["url"]).hostname or ""),
    Function("getPort", _STRING, (_URL,), _port),
    Function("getEscapedPath", _STRING, (_URL,), lambda url: urlsplit(url["url"]).path),
    Function(
        "getQuery",
        cel.Type.Map(_STRING, _STRINGS),
        (_URL,),
        lambda url: parse_qs(urlsplit(url["url"]).query, keep_blank_values=True),
    ),
    _free("isIP", _BOOL, _STRING, lambda text: _parsed(ipaddress.ip_address, text) is not None),
    _free("ip", _IP, _STRING, _ip),
    _free("ip.isCanonical", _BOOL, _STRING, lambda text: _ip(text)["ip"] == text),
    Function("family", _INT, (_IP,), lambda ip: _address(ip).version),
    Function("isUnspecified", _BOOL, (_IP,), lambda ip: _address(ip).is_unspecified),
    Function("isLoopback", _BOOL, (_IP,), lambda ip: _address(ip).is_loopback),
    Function("isLinkLocalMulticast", _BOOL, (_IP,), lambda ip: _address(ip).is_multicast),
    Function("isLinkLocalUnicast", _BOOL, (_IP,), lambda ip: _address(ip).is_link_local),
    Function("isGlobalUnicast", _BOOL, (_IP,), lambda ip: not _address(ip).is_multicast),
    _free("isCIDR", _BOOL, _STRING, lambda text: "/" in text and _parsed(_cidr, text) is not None),
    _free("cidr", _CIDR, _STRING, _cidr),
    Function("containsIP", _BOOL, (_CIDR, _STRING), _holds),
    Function("containsIP", _BOOL, (_CIDR, _IP), lambda cidr, ip: _holds(cidr, ip["ip"])),
    Function("containsCIDR", _BOOL, (_CIDR, _STRING), _holds),
    Function("containsCIDR", _BOOL, (_CIDR, _CIDR), lambda cidr, inner: _holds(cidr, inner["cidr"])),
    Function("prefixLength", _INT, (_CIDR,), lambda cidr: _network(cidr).prefixlen),
    Function("masked", _CIDR, (_CIDR,), lambda cidr: {"cidr": str(_network(cidr))}),
    Function("find", _STRING, (_STRING, _STRING), _found),
    Function("findAll", _STRINGS, (_STRING, _STRING), _all_found),
    Function("findAll", _STRINGS, (_STRING, _STRING, _INT), _all_found),
    *(Function("isSorted", _BOOL, (cel.Type.List(item),), _is_sorted) for item in _COMPARED),
    *(Function("min", item, (cel.Type.List(item),), _least) for item in _COMPARED),
    *(Function("max", item, (cel.Type.List(item),), _greatest) for item in _COMPARED),
    *(Function("sum", item, (cel.Type.List(item),), sum) for item in _SUMMED),
    Function("sets.contains", _BOOL, (_LIST, _LIST), _contains, member=False),
    Function(
        "sets.equivalent",
        _BOOL,
        (_LIST, _LIST),
        lambda left, right: _contains(left, right) and _contains(right, left),
        member=False,
    ),
    Function(
        "sets.intersects",
        _BOOL,
        (_LIST, _LIST),
        lambda left, right: any(item in right for item in left),
        member=False,
    ),
)


def _declarations(functions: Iterable[Function], *, runs: bool) -> list[cel.FunctionDecl]:
    overloads: dict[str, dict[str, cel.Overload]] = {}
    for function in functions:
        result, parameters = function.result, function.parameters
        if runs:
            result, parameters = _run_time_type(result), tuple(map(_run_time_type, parameters))
        names = "_".join(one.name() for one in parameters)
        identity = re.sub(r"\W+", "_", f"{function.name}_{function.member}_{names}").lower()
        overloads.setdefault(function.name, {})[identity] = cel.Overload(
            identity,
            return_type=result,
            parameters=list(parameters),
            is_member=function.member,
            **({"impl": function.does} if runs else {}),
        )
    return [cel.FunctionDecl(name, list(found.values())) for name, found in overloads.items()]


def _run_time_type(declared: cel.Type) -> cel.Type:
    """The type by which the evaluator chooses an overload."""
    name = declared.name()
    if name.startswith(("kubernetes.", "net.")):
        return cel.Type.MAP
    if name.startswith("LIST"):
        return cel.Type.LIST
    return cel.Type.MAP if name.startswith("MAP") else declared


def checked(*more: Function) -> list[cel.FunctionDecl]:
    """The functions as declared to the checker, and its own ones."""
    return _declarations((*FUNCTIONS, *more), runs=False)


def evaluated(*more: Function) -> list[cel.FunctionDecl]:
    """The implementations that the evaluator calls, and those of a caller."""
    return _declarations((*FUNCTIONS, *more), runs=True)
