"""Finds out who sends a request: tokens, service accounts, impersonation.

Source: apiserver v1.36 ``pkg/endpoints/filters/{authentication,impersonation}.go``.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from roadstead.authorization.rules import AUTHENTICATED, Asked, account_user
from roadstead.authorization.service_account_tokens import user_of
from roadstead.store.admission import ADMINISTRATOR
from roadstead.values.status_errors import StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from roadstead.values.resources import Obj

ANONYMOUS: Obj = {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
_EXTRA = "impersonate-extra-"


def unauthorized() -> StatusError:
    """401: the client has not shown who it is."""
    return StatusError(401, "Unauthorized", "Unauthorized")


@dataclass(slots=True)
class Identities:
    """The clients of a server.

    Args:
        token: of the administrator.
        token_file: further tokens of the administrator, one per line; read at each request.
        anonymous: whether a client without a token is a user of its own.
        accounts: finds a service account by namespace and name; None accepts none of their tokens.
    """

    token: str
    token_file: Path | None = None
    anonymous: bool = False
    accounts: Callable[[str, str], Obj | None] = field(default=lambda _namespace, _name: None)

    def sender(self, headers: Mapping[str, str]) -> Obj:
        """Who sends a request, before impersonation, as ``userInfo``.

        Raises:
            StatusError: 401.
        """
        scheme, _, shown = headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            if self.anonymous and not scheme:
                return ANONYMOUS
            raise unauthorized()
        shown = shown.strip()
        if self._is_administrators(shown.encode()):
            return ADMINISTRATOR
        known = user_of(shown, [], self.token)
        if known is None:
            raise unauthorized()
        user: Obj = known["user"]
        _, _, namespace, name = user["username"].split(":", 3)
        account = self.accounts(namespace, name)
        if account is None or account["metadata"]["uid"] != user["uid"]:
            raise unauthorized()
        return user

    def _is_administrators(self, shown: bytes) -> bool:
        tokens = [self.token.encode()]
        if self.token_file is not None and self.token_file.is_file():
            tokens += self.token_file.read_bytes().split()
        return any(hmac.compare_digest(shown, token) for token in tokens)

    def user(self, headers: Mapping[str, str]) -> Obj:
        """Who a request is for, after impersonation.

        Raises:
            StatusError: 400, 401.
        """
        return impersonated(headers) or self.sender(headers)


def impersonated(headers: Mapping[str, str]) -> Obj | None:
    """The user that the headers of a request name; None without such headers.

    Raises:
        StatusError: 400, if they name groups without a user.
    """
    name = headers.get("Impersonate-User", "")
    groups = _all(headers, "Impersonate-Group")
    uid = headers.get("Impersonate-Uid", "")
    extra: dict[str, list[str]] = {}
    for key, value in headers.items():
        if key.lower().startswith(_EXTRA):
            extra.setdefault(unquote(key.lower().removeprefix(_EXTRA)), []).append(value)
    if not name:
        if groups or uid or extra:
            raise bad_request(f"requested {groups or extra or uid} without impersonating a user")
        return None
    if not groups and name.startswith("system:serviceaccount:") and name.count(":") == 3:
        groups = list(account_user(*name.split(":")[2:])["groups"])
    elif name == ANONYMOUS["username"]:
        groups = groups or list(ANONYMOUS["groups"])
    elif AUTHENTICATED not in groups:
        groups = [*groups, AUTHENTICATED]
    user: Obj = {"username": name, "groups": groups}
    return user | ({"uid": uid} if uid else {}) | ({"extra": extra} if extra else {})


def impersonation_needs(headers: Mapping[str, str]) -> list[Asked]:
    """The rights that the sender of a request with such headers needs."""
    name = headers.get("Impersonate-User", "")
    if not name:
        return []
    if name.startswith("system:serviceaccount:") and name.count(":") == 3:
        _, _, namespace, account = name.split(":")
        needs = [Asked("impersonate", "", "serviceaccounts", namespace, account)]
    else:
        needs = [Asked("impersonate", "", "users", "", name)]
    needs += [Asked("impersonate", "", "groups", "", group) for group in _all(headers, "Impersonate-Group")]
    if uid := headers.get("Impersonate-Uid", ""):
        needs.append(Asked("impersonate", "authentication.k8s.io", "uids", "", uid))
    for key, value in headers.items():
        if key.lower().startswith(_EXTRA):
            extra = unquote(key.lower().removeprefix(_EXTRA))
            needs.append(Asked("impersonate", "authentication.k8s.io", f"userextras/{extra}", "", value))
    return needs


def _all(headers: Mapping[str, str], name: str) -> list[str]:
    return [value for key, value in headers.items() if key.lower() == name.lower()]
