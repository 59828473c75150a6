"""The limit of open files, which connections count as: judged and raised at the start of the process."""

import resource

import structlog

#: Open files that a process may need: connections to its endpoints and to the API server, pipes of its forks.
NEEDED = 1024


def raise_limit() -> int:
    """Raise the limit to the hard one, and return it; a limit below what may be needed is logged."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS: the hard limit is "unlimited", which cannot be set
            hard = soft
    if hard != resource.RLIM_INFINITY and hard < NEEDED:
        structlog.get_logger("plimsoll").warning(
            "the limit of open files is low",
            limit=hard,
            needed=NEEDED,
            remedy="raise the hard limit of the container or the shell (ulimit -Hn)",
        )
    return hard
