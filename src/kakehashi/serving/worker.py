"""The one thread that the model belongs to."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from kakehashi.errors import KakehashiError
from kakehashi.serving.schema import Answer
from kakehashi.serving.tasks import Task, Text
from kakehashi.serving.waiting import Job, Sentence, Waiting

_LOG = logging.getLogger(__name__)


class Backend(Protocol):
    """A model, as the service sees it."""

    def run(self, task: Task, texts: Sequence[Text]) -> list[Answer]:
        """One answer for each text, in order."""
        ...

    def work(self, task: Task, texts: Sequence[Text]) -> list[int]:
        """How much there is to do for each text; time and memory grow with it.

        Its pieces, EOS included, times the hypotheses that are kept (with
        details those of the n-best list twice). To a model that does not cut
        a text that is longer than those of its training, it is so many times as much. Callable from
        any thread, whatever the model is doing.
        """
        ...


class Worker(threading.Thread):
    """Computes what waits, batch by batch, until the queue is closed and empty.

    An error belongs to the job that caused it: where several jobs share a batch that fails, each
    is computed by itself, and those without fault are answered.
    """

    def __init__(self, backend: Backend, waiting: Waiting, computed: Callable[[int], None]) -> None:
        """``computed`` is told the number of sentences of every batch, before it is computed."""
        super().__init__(name="kakehashi-model", daemon=True)
        self._backend = backend
        self._waiting = waiting
        self._computed = computed

    def run(self) -> None:
        """Serve the queue."""
        while (batch := self._waiting.take()) is not None:
            self._computed(len(batch))
            start = time.perf_counter()
            self._batch(batch)
            self._waiting.finished(batch, time.perf_counter() - start)
            del batch  # texts and answers are not kept until the next ones come

    def _batch(self, batch: list[Sentence]) -> None:
        jobs = list(dict.fromkeys(sentence.job for sentence in batch))
        try:
            self._compute(batch)
        except KakehashiError as error:
            self._failed(jobs, batch, error)
        except Exception as error:  # noqa: BLE001  whatever it was, the others must be served
            _LOG.exception("a batch failed")
            self._failed(jobs, batch, error)

    def _failed(self, jobs: list[Job], batch: list[Sentence], error: Exception) -> None:
        if len(jobs) == 1:
            self._waiting.fail(jobs[0], error)
            return
        for job in jobs:
            self._batch([sentence for sentence in batch if sentence.job is job])

    def _compute(self, batch: list[Sentence]) -> None:
        texts = [sentence.text for sentence in batch]
        answers = self._backend.run(batch[0].job.task, texts)
        for sentence, answer in zip(batch, answers, strict=True):
            self._waiting.deliver(sentence, answer)
