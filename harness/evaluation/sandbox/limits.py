"""Resource limits of processes that handle what a candidate wrote, set the same way everywhere."""

from __future__ import annotations

import resource
from collections.abc import Mapping


def bound(limits: Mapping[int, int]) -> None:
    """Lower the calling process's limits for good, soft and hard, never above what it has; no dump of its memory.

    Raises:
        OSError, ValueError: the system refuses one of them; those before it stand.
    """
    # 1, not 0: collectors of dumps ignore 0
    for kind, value in {resource.RLIMIT_CORE: 1, resource.RLIMIT_MSGQUEUE: 0, **limits}.items():
        _, hard = resource.getrlimit(kind)
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))
