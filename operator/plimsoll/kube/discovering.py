"""What else the server serves: asked once, at start."""

from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session

#: Kubernetes 1.37's alpha group with a resource of our plural.
LIFECYCLE = "lifecycle.k8s.io"


async def shadowing_evictions(session: Session) -> str:
    """The built-in resource that kubectl means by a bare ``evictions``, "" when that is ours.

    kubectl takes the built-in group silently where both are served.
    """
    try:
        group = await session.object("GET", f"/apis/{LIFECYCLE}")
        for version in group.get("versions") or ():
            listed = await session.object("GET", f"/apis/{version['groupVersion']}")
            if any(resource.get("name") == "evictions" for resource in listed.get("resources") or ()):
                return f"evictions.{version['groupVersion']}"
    except (APIError, KeyError, TypeError):
        return ""
    return ""
