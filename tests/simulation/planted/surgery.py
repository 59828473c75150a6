"""Ways to break an operator: replaced attributes, edited requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from plimsoll.app.operator import Operator
from plimsoll.kube.session.session import Session
from simulation.exchanges import Answer

#: Edits a request before it is sent: method, path and body; or answers in the API server's stead.
Edit = Callable[[str, str, Any], "tuple[str, str, Any] | Answer"]


def replaced(owner: Any, name: str, made: Callable[[Any], Any]) -> None:
    """Put something else in the place of an attribute, made of what is there.

    Raises:
        AttributeError: It is not there: the operator has changed, and the slip must be planted elsewhere.
    """
    setattr(owner, name, made(getattr(owner, name)))


def tampered(operator: Operator, edit: Edit) -> None:
    """Every request of this operator passes the edit; those of its election do not."""
    tampered_session(operator.session, edit)


def tampered_session(session: Session, edit: Edit) -> None:
    """Every request of a session passes the edit."""

    def edited(send: Any) -> Any:
        async def exchange(
            method: str, path: str, content: bytes | None, headers: Any, **options: Any
        ) -> Answer:
            edited = edit(method, path, None if content is None else orjson.loads(content))
            if len(edited) == 2:
                options["gate"]()
                return edited
            method, path, body = edited
            content = None if body is None else orjson.dumps(body)
            sent: Answer = await send(method, path, content, headers, **options)
            return sent

        return exchange

    replaced(session._transport, "exchange", edited)
