"""Keeping freed memory, because training and searches ask for the same sizes at every step."""

import ctypes
import sys

KEEP = 1 << 30
"""Bytes: what stays with the process when freed, and how large a block the heap itself serves."""
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Of glibc's malloc.h."""
LARGEST_INT = 2**31 - 1


def keep_freed_memory() -> bool:
    """Have glibc serve large tensors from memory it keeps; whether that could be set.

    By default a block of some hundred kilobytes comes fresh from the kernel each time and goes
    back when freed, so that every update pays for mapping and zeroing the same pages again: 7 to
    15 % of a small model's training time (scripts/benchmark/training.py), and as much of a search's
    steps. Other C libraries are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(
        mallopt(M_MMAP_THRESHOLD, KEEP)
        and mallopt(M_TRIM_THRESHOLD, LARGEST_INT)
        and mallopt(M_TOP_PAD, KEEP >> 2)
    )
