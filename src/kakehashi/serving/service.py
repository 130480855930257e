"""From a request to its answers: the queue, the worker, and who waits how long for what."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Self

from kakehashi.errors import KakehashiError
from kakehashi.serving.limits import Limits
from kakehashi.serving.metrics import Metrics
from kakehashi.serving.refusal import Refusal
from kakehashi.serving.schema import Answer
from kakehashi.serving.stopping import Stopping
from kakehashi.serving.tasks import Attending, Task, Text
from kakehashi.serving.waiting import Full, Job, Late, Waiting
from kakehashi.serving.worker import Backend, Worker

_STOP = 5.0
"""Seconds that a batch may still take when a service has to end."""


class Service:
    """A model at work; use it as a context, in which the worker runs."""

    def __init__(self, backend: Backend, limits: Limits) -> None:
        self.limits = limits
        self.waiting = Waiting(limits)
        self.metrics = Metrics(lambda: len(self.waiting))
        self.stopping = Stopping()
        self._jobs: set[Job] = set()
        self._backend = backend
        self._worker = Worker(backend, self.waiting, self.metrics.batches.observe)

    def __enter__(self) -> Self:
        self._worker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.waiting.close()
        self._worker.join(_STOP)

    @property
    def busy(self) -> bool:
        """Whether the worker is still there: after the end, with a batch that takes too long."""
        return self._worker.is_alive()

    async def answers(
        self, task: Task, texts: Sequence[Text], gone: Callable[[], Awaitable[None]]
    ) -> list[Answer]:
        """The answer to each text, in order.

        Args:
            task: what is asked for.
            texts: within the limits.
            gone: returns when the client is no longer there.

        Raises:
            Refusal: when a text is too much work, the queue is full, there is no time for it or
                the time is up, the client has gone, the service ends, or the model refuses. What
                has not been begun is then dropped.
        """
        # Cutting long texts into pieces takes a while, in which others are answered.
        work = await asyncio.to_thread(self._backend.work, task, texts)
        self._check(task, work)
        if self.stopping.begun.is_set():
            raise self.stopping.refuse()
        job = Job(task, texts, work)
        try:
            self.waiting.put(job)
        except Full:
            raise self._full() from None
        except Late:
            raise self._late() from None
        self.metrics.sentences.labels(type(task).__name__.lower()).inc(len(texts))
        self._jobs.add(job)
        try:
            return await self._wait(job, gone)
        finally:
            self._jobs.discard(job)
            self.waiting.abandon(job)  # nothing is left of one that was answered

    def give_up(self) -> None:
        """Refuse what is still not answered: the service has to end."""
        self.stopping.begun.set()
        for job in self._jobs:
            if not job.future.done():
                self.waiting.fail(job, self.stopping.refuse())

    def _check(self, task: Task, work: Sequence[int]) -> None:
        looking = isinstance(task, Attending)
        most = self.limits.attention if looking else self.limits.work
        for number, one in enumerate(work, 1):
            if one > most:
                raise Refusal(
                    413,
                    "too_large",
                    f"text {number} comes to {one:,} pieces times hypotheses, and {most:,} are "
                    f"allowed{' where every weight is sent' if looking else ''}: send it in parts, "
                    "or ask for a smaller beam",
                )

    async def _wait(self, job: Job, gone: Callable[[], Awaitable[None]]) -> list[Answer]:
        future = asyncio.wrap_future(job.future)
        left = asyncio.ensure_future(gone())
        try:
            both: set[asyncio.Future[Any]] = {future, left}
            await asyncio.wait(
                both,
                timeout=self.limits.seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            left.cancel()
        if future.done():
            try:
                return future.result()
            except Late:
                raise self._late() from None
            except KakehashiError as error:
                raise Refusal(400, "refused", f"{error}") from error
        if left.done():
            raise Refusal(499, "gone", "the client has gone")
        raise Refusal(
            504,
            "timeout",
            f"there was no time for this within {self.limits.seconds:g} s: ask for fewer "
            "sentences at a time, or later",
            self._later(),
        )

    def _late(self) -> Refusal:
        return Refusal(
            503,
            "overloaded",
            f"{len(self.waiting):,} sentences wait already, too many to answer this within "
            f"{self.limits.seconds:g} s: ask again later",
            self._later(),
        )

    def _full(self) -> Refusal:
        return Refusal(
            503,
            "overloaded",
            f"{len(self.waiting):,} sentences wait already and there is room for "
            f"{self.limits.queue:,}: ask again later",
            self._later(),
        )

    def _later(self) -> dict[str, str]:
        """When the queue should have become shorter."""
        return {"Retry-After": str(max(1, min(math.ceil(self.waiting.seconds), 60)))}
