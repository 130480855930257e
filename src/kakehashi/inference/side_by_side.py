"""Batches that are worked on side by side, each by a thread of its own."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from threading import Barrier
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(
    work: Callable[[T], R],
    items: Sequence[T],
    threads: int,
    begin: Callable[[], None],
    begun: Callable[[], None],
) -> Iterator[R]:
    """``map(work, items)``, in order, on as many as ``threads`` threads.

    No more than twice as many items as threads are taken ahead of what is asked for. An error comes
    where its result would have come. After it, or when nobody asks for more, nothing new begins;
    what has begun is waited for, at Ctrl-C too.

    Args:
        work: may be called by several threads at once.
        items: each for one call.
        threads: one, or a single item: no other thread but the caller's.
        begin: called by each thread before its first item.
        begun: called by the caller when they all have.
    """
    threads = min(threads, len(items))
    if threads < 2:
        yield from map(work, items)
        return
    everyone = Barrier(threads + 1)

    def start() -> None:
        try:
            begin()
        except BaseException:
            everyone.abort()
            raise
        everyone.wait()

    pool = ThreadPoolExecutor(threads, thread_name_prefix="search", initializer=start)
    left, ahead = iter(items), deque[Future[R]]()
    try:
        ahead.extend(pool.submit(work, item) for item in islice(left, threads))
        everyone.wait()
        begun()
        ahead.extend(pool.submit(work, item) for item in islice(left, threads))
        while ahead:
            yield ahead.popleft().result()
            ahead.extend(pool.submit(work, item) for item in islice(left, 1))
    finally:
        everyone.abort()  # or, if something went wrong so early, threads would wait for each other
        pool.shutdown(cancel_futures=True)
