# SPDX-License-Identifier: GPL-2.0-only
"""How many threads to use."""

from __future__ import annotations

import os

from btfstep.errors import UsageError

MAX_JOBS = 256
"""More threads than this gain nothing; larger requests are taken as this."""

CGROUP_ROOT = "/sys/fs/cgroup"


def available_processors() -> int:
    """The processors that this process may use: at least 1.

    That is the smallest of the machine's, those of the affinity mask, and what
    the CPU limits of its control groups allow (version 2, rounded up), so that
    ``-j`` in a container of two processors does not start sixty threads.
    """
    try:
        count = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        count = os.cpu_count() or 1
    limit = cgroup_limit()
    if limit is not None:
        count = min(count, limit)
    return max(1, count)


def cgroup_limit(root: str = CGROUP_ROOT, membership: str = "/proc/self/cgroup") -> int | None:
    """The processors that cpu.max of this process's group and the groups above it allow, rounded up; None if unlimited.

    Anything that cannot be read or understood is no limit.
    """
    smallest: int | None = None
    for group in _groups(membership):
        try:
            with open(f"{root}{group}/cpu.max", encoding="ascii") as file:
                quota, period = file.read().split()
            limit = -(-int(quota) // int(period))
        except (OSError, ValueError, ZeroDivisionError):
            continue  # "max", no such controller, version 1, ...
        if limit > 0:
            smallest = limit if smallest is None else min(smallest, limit)
    return smallest


def _groups(membership: str) -> list[str]:
    """This process's version 2 control group and the ones above it, as paths without a trailing slash."""
    try:
        with open(membership, encoding="utf-8", errors="surrogateescape") as file:
            line = next((line for line in file if line.startswith("0::/")), None)
    except OSError:
        return []
    if line is None:
        return []
    path = line.rstrip("\n")[len("0::") :].rstrip("/")
    groups = [path]
    while path:
        path = path.rpartition("/")[0]
        groups.append(path)
    return groups


def _jobs_of_make() -> int:
    """The N of the ``-jN`` that make was given; without one, no limit."""
    text = os.environ.get("MAKEFLAGS")
    if not text:
        return MAX_JOBS
    from btfstep.build.jobserver import MakeFlags

    jobs = MakeFlags(text).jobs
    return MAX_JOBS if jobs is None else jobs


def parse_jobs(text: str | None) -> int:
    """Read the value of ``-j``: None is every processor available, but no more than make's own ``-jN``; 0 is 1.

    Raises UsageError if `text` is not a number.
    """
    if text is None:
        return max(1, min(available_processors(), _jobs_of_make(), MAX_JOBS))
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"the number of jobs has to be a number, not '{text}'")
    # The length first: int() of a very long string of digits is slow or refused.
    count = int(text) if len(text) < 10 else MAX_JOBS
    return max(1, min(count, MAX_JOBS))
