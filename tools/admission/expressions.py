"""Expressions of the generated admission policy, in the Common Expression Language (CEL).

Parsers limit the depth of expressions, and CEL has no function that flattens a list or binds a name. So
values are collected level by level into flat lists of variables, each variable an expression of its own.
Pairs of an index and a key are encoded as strings that are joined and split.
"""

import json

#: Maximum number of strategies in a policy, and of characters of a name that are compared.
POSITIONS = 100

#: Separators of pairs and within a pair; names of fields cannot contain them.
BETWEEN, WITHIN = r"'\u0001'", r"'\u0002'"

#: Strings that pydantic reads as a boolean.
_BOOLEANS = ["true", "false", "t", "f", "yes", "no", "y", "n", "on", "off", "1", "0"]


def cel(value: object) -> str:
    """A literal: strings, numbers, lists and maps are written as in JSON."""
    return json.dumps(value)


def hint(name: str, known: str) -> str:
    """An expression for a suggestion if a name differs by one typing error from a known one, else ""."""
    a_slip = "variables.positions.exists(i, i < "
    slips = (
        "c.lowerAscii() == n.lowerAscii() || "
        f"(c.size() == n.size() + 1 && {a_slip}c.size() && c.substring(0, i) + c.substring(i + 1) == n)) || "
        f"(n.size() == c.size() + 1 && {a_slip}n.size() && n.substring(0, i) + n.substring(i + 1) == c)) || "
        f"(c.size() == n.size() && {a_slip}n.size() && c.substring(0, i) == n.substring(0, i) && "
        "(c.substring(i + 1) == n.substring(i + 1) || (i + 1 < n.size() && "
        "c.substring(i + 2) == n.substring(i + 2) && c.substring(i, i + 1) == n.substring(i + 1, i + 2) && "
        "c.substring(i + 1, i + 2) == n.substring(i, i + 1)))))"
    )
    near = f"[{name}].map(n, {known}.filter(c, {slips}))[0]"
    return f"[{near}].map(near, near.size() > 0 ? '; did you mean ' + near[0] + '?' : '')[0]"


def is_mistyped(kind: str, value: str) -> str:
    """An expression for whether the operator rejects a value because of its type."""
    given = f"type({value})"
    words = f"string({value}).lowerAscii()"
    cases = (
        (f"{value} == null", f"!{kind}.contains('?')"),
        (f"{kind}.startsWith('string')", f"{given} != string"),
        (f"{kind}.startsWith('array')", f"{given} != list"),
        (f"{kind}.startsWith('object')", f"{given} != map"),
        (f"{kind}.startsWith('amount')", f"{given} == list || {given} == map"),
        (f"{given} == list || {given} == map", "true"),
        (f"{kind}.startsWith('boolean') && {kind}.contains('!')", f"{given} != bool"),
        (f"{kind}.startsWith('integer') && {kind}.contains('!')", f"{given} != int"),
        (f"{kind}.contains('!')", f"{given} != int && {given} != double"),
        (f"{kind}.startsWith('boolean') && {given} == string", f"!({words} in {cel(_BOOLEANS)})"),
        (f"{kind}.startsWith('boolean') && {given} != bool", f"{value} != 0 && {value} != 1"),
        (f"{given} == string", f"!{words}.matches('[0-9]|inf|nan')"),
        (
            f"{kind}.startsWith('integer') && {given} == double && {value} > -9e15 && {value} < 9e15",
            f"{value} != double(int({value}))",
        ),
    )
    # As a disjunction, not as nested conditions: parsers limit the depth.
    texts, before = [], ""
    for condition, verdict in cases:
        texts.append(f"({before}({condition}) && ({verdict}))")
        before += f"!({condition}) && "
    return " || ".join(texts)


def flat(outer: str, inner: str) -> str:
    """An expression for the (list index, key) pairs of a nested list, as strings; CEL has no flatten()."""
    return (
        f"variables.positions.filter(i, i < {outer}.size()).map(i, {inner}).filter(t, t != '')"
        f".join({BETWEEN}).split({BETWEEN}).filter(t, t != '')"
    )


def pairs(texts: str, made: str) -> str:
    """An expression that maps ``made`` over these pairs; the pair is ``p``."""
    return f"{texts}.map(t, t.split({WITHIN})).map(p, {made})"


def object_level(number: int) -> list[tuple[str, str]]:
    """Variables for the fields, items and values of one level's objects, and for the next level's objects."""
    objects, entries = f"variables.objects{number}", f"variables.entries{number}"
    passed_over = " && !(f in ['apiVersion', 'kind'])" if number == 0 else ""
    joined = f"string(i) + {WITHIN} +"
    one, each = f"{objects}[int(p[0])]", f"{entries}[int(p[0])]"
    parts = f"variables.parts{number}"
    return [
        (
            f"keys{number}",
            flat(
                objects,
                f"{objects}[i].has.filter(f, f != ''{passed_over}).map(f, {joined} f).join({BETWEEN})",
            ),
        ),
        (
            f"entries{number}",
            pairs(
                f"variables.keys{number}",
                f"{{'at': dyn({one}.at + '.' + p[1]), 'of': dyn({one}.of + '.' + p[1]), "
                f"'within': dyn({one}.of), 'key': dyn(p[1]), 'value': {one}.has[p[1]]}}",
            ),
        ),
        (
            f"indexes{number}",
            flat(
                entries,
                f"(type({entries}[i].value) != list ? [] : "
                f"variables.positions.filter(x, x < {entries}[i].value.size()))"
                f".map(x, {joined} string(x)).join({BETWEEN})",
            ),
        ),
        (
            f"names{number}",
            flat(
                entries,
                f"(type({entries}[i].value) != map || !(({entries}[i].of + '{{}}') in variables.types) "
                f"? [] : {entries}[i].value.map(x, {joined} x)).join({BETWEEN})",
            ),
        ),
        (
            f"parts{number}",
            pairs(
                f"variables.indexes{number}",
                f"{{'at': dyn({each}.at + '[' + p[1] + ']'), 'of': dyn({each}.of + '[]'), "
                f"'value': {each}.value[int(p[1])]}}",
            )
            + " + "
            + pairs(
                f"variables.names{number}",
                f"{{'at': dyn({each}.at + '.' + p[1]), 'of': dyn({each}.of + '{{}}'), "
                f"'value': {each}.value[p[1]]}}",
            ),
        ),
        (
            f"objects{number + 1}",
            " + ".join(
                f"{given}.filter(e, e.of in variables.fields && type(e.value) == map)"
                ".map(e, {'at': e.at, 'of': e.of, 'has': e.value})"
                for given in (entries, parts)
            ),
        ),
    ]


def roots(section: str, name: str, known: str) -> str:
    """An expression for the arguments in one list of the spec that belong to in-tree names."""
    return (
        f"variables.positions.filter(i, i < variables.{name}.size() && variables.{name}[i].name in {known})"
        f".map(i, {{'at': dyn('spec.{section}.{name}[' + string(i) + '].args'), "
        f"'of': dyn(variables.{name}[i].name), 'has': dyn(variables.{name}[i].?args.orValue({{}}))}})"
    )


def strangers(name: str, known: str) -> str:
    """An expression for the positions of names that are not in tree."""
    at = f"variables.{name}"
    return f"variables.positions.filter(i, i < {at}.size() && !({at}[i].name in {known}))"
