"""The queue: which sentences of all the requests that wait go through the model next.

The place of a sentence is a number: the place of the last one served, plus one, plus the number of
sentences before it in its own request. So a short request overtakes the rest of a long one that
came before it, and nobody is overtaken forever (start-time fair queueing, Goyal et al. 1996, with
every sentence taken to cost the same).
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from kakehashi.serving.limits import Limits
from kakehashi.serving.schema import Answer
from kakehashi.serving.tasks import Task, Text, strings


@dataclass(eq=False)
class Job:
    """The sentences of one request, on their way."""

    task: Task
    texts: Sequence[Text]
    future: "Future[list[Answer]]" = field(default_factory=Future)
    """The answers in the order of the texts."""
    answers: dict[int, Answer] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Sentence:
    """One text of a job, in the queue."""

    job: Job
    index: int
    """In the job."""
    place: tuple[int, int]
    """In the queue; the second number, which tells equal places apart, counts all sentences."""

    @property
    def text(self) -> Text:
        """What the model is given."""
        return self.job.texts[self.index]

    @property
    def size(self) -> int:
        """Its characters."""
        return sum(map(len, strings(self.text)))


class Full(Exception):  # noqa: N818  the name of what is the case
    """There is no room for a job's sentences."""


class Waiting:
    """The sentences of all jobs that nobody has begun with; safe to use from any thread."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sentences: list[Sentence] = []
        self._clock = 0
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._sentences)

    def put(self, job: Job) -> None:
        """Queue a job's sentences: all of them, or none.

        Raises:
            Full: when there is no room.
        """
        with self._changed:
            if len(self._sentences) + len(job.texts) > self._limits.queue:
                raise Full
            for index in range(len(job.texts)):
                self._count += 1
                place = (self._clock + 1 + index, self._count)
                self._sentences.append(Sentence(job, index, place))
            self._changed.notify()

    def take(self) -> list[Sentence] | None:
        """The next sentences to compute, shortest first; waits for some. None: closed and empty.

        They have one task. One of them is the first of the queue; the others are those nearest to
        it in length, for padding is wasted time.
        """
        with self._changed:
            while True:
                while not self._sentences and not self._closed:
                    self._changed.wait()
                if not self._sentences:
                    return None
                self._gather()
                if self._sentences:  # they may have been abandoned meanwhile
                    return self._batch()

    def abandon(self, job: Job) -> None:
        """Drop what is left of a job: nobody waits for it any more."""
        with self._changed:
            job.future.cancel()
            self._sentences = [one for one in self._sentences if one.job is not job]

    def deliver(self, sentence: Sentence, answer: Answer) -> None:
        """Hand over the answer to a sentence; the last one completes the job."""
        job = sentence.job
        with self._changed:
            job.answers[sentence.index] = answer
            if len(job.answers) == len(job.texts) and not job.future.done():
                job.future.set_result([job.answers[index] for index in range(len(job.texts))])

    def fail(self, job: Job, error: Exception) -> None:
        """Let a job end with an error, and drop what is left of it."""
        with self._changed:
            if not job.future.done():
                job.future.set_exception(error)
        self.abandon(job)

    def close(self) -> None:
        """Nothing will be put any more: ``take`` ends when what waits has been taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _gather(self) -> None:
        """Wait a moment for a full batch."""
        end = time.monotonic() + self._limits.gather
        while not self._closed and len(self._sentences) < self._limits.together:
            left = end - time.monotonic()
            if left <= 0 or not self._changed.wait(left):
                return

    def _batch(self) -> list[Sentence]:
        first = min(self._sentences, key=lambda one: one.place)
        alike = [one for one in self._sentences if one.job.task == first.job.task]
        alike.sort(key=lambda one: (one is not first, abs(one.size - first.size), one.place))
        batch: list[Sentence] = []
        longest = 0
        for one in alike[: self._limits.together]:
            longest = max(longest, one.size)
            if batch and longest * (len(batch) + 1) > self._limits.padded:
                break
            batch.append(one)
        self._clock = first.place[0]
        taken = set(map(id, batch))
        self._sentences = [one for one in self._sentences if id(one) not in taken]
        return sorted(batch, key=lambda one: (one.size, one.place))
