"""Batches that are worked on side by side, each by a thread of its own."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(
    work: Callable[[T], R], items: Sequence[T], threads: int, begin: Callable[[], None]
) -> Iterator[R]:
    """``map(work, items)``, in order, on as many as ``threads`` threads.

    An error comes where its result would have come. When nobody asks for more, what has not begun
    never will.

    Args:
        work: may be called by several threads at once.
        items: each for one call.
        threads: one, or a single item: no other thread but the caller's.
        begin: called by each thread before its first item.
    """
    threads = min(threads, len(items))
    if threads < 2:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="search", initializer=begin)
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)
