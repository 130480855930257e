"""The queue: which sentences of all the requests that wait go through the model next.

Requests are served one after another, in the order in which they would end if all of them were
served at once, each with an equal share of the model (fair queueing; Demers, Keshav and Shenker,
1989). So a short request overtakes a long one that came before it, nobody is overtaken
forever, and of equal requests the first is finished before the next is begun: when there is too
much to do, some are answered in time, where equal progress would make all of them late. Those that
cannot be in time any more are refused before they are begun.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from kakehashi.serving.limits import Limits
from kakehashi.serving.schema import Answer
from kakehashi.serving.tasks import Task, Text

_MEMORY = 0.9
"""What the rate keeps of its past with every batch."""
_ROOM = 0.8
"""The share of a request's time that its work may be expected to take: others come meanwhile."""


@dataclass(eq=False)
class Job:
    """The sentences of one request, on their way."""

    task: Task
    texts: Sequence[Text]
    work: Sequence[int]
    """Of each text, see ``Backend.work``."""
    future: "Future[list[Answer]]" = field(default_factory=Future)
    """The answers in the order of the texts."""
    answers: dict[int, Answer] = field(default_factory=dict)
    begun: bool = False
    place: tuple[float, int] = (0.0, 0)
    """In the queue; the second number, which tells equal places apart, counts all jobs."""
    deadline: float = 0.0
    """On the monotonic clock."""


@dataclass(frozen=True, eq=False)
class Sentence:
    """One text of a job, in the queue."""

    job: Job
    index: int
    """In the job."""

    @property
    def text(self) -> Text:
        """What the model is given."""
        return self.job.texts[self.index]

    @property
    def work(self) -> int:
        """See ``Backend.work``."""
        return self.job.work[self.index]

    @property
    def place(self) -> tuple[tuple[float, int], int, int]:
        """In the queue: a job's short sentences first, for padding is wasted time."""
        return (self.job.place, self.work, self.index)


class Full(Exception):  # noqa: N818  the name of what is the case
    """There is no room for a job's sentences."""


class Late(Exception):  # noqa: N818
    """A job cannot be done in the time that there is for it."""


class Waiting:
    """The sentences of all jobs that nobody has begun with; safe to use from any thread."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sentences: list[Sentence] = []
        self._running = 0  # work that has been taken and is not finished
        self._full = False  # whether more waited than could be taken with it
        self._shared = 0.0  # work that each job would have got of an equally shared model
        self._count = 0
        self._done = 0.0
        self._seconds = 0.0
        self._closed = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._sentences)

    @property
    def seconds(self) -> float:
        """How long what waits will take, as things went when there was much to do; else 0."""
        with self._changed:
            return self._takes(self._running + sum(one.work for one in self._sentences))

    def put(self, job: Job) -> None:
        """Queue a job's sentences: all of them, or none.

        Raises:
            Full: when there is no room.
            Late: when there is too much before them to be in time.
        """
        with self._changed:
            if len(self._sentences) + len(job.texts) > self._limits.queue:
                raise Full
            if not self._sentences and not self._running:
                self._shared = 0.0
            self._count += 1
            job.place = (self._shared + sum(job.work), self._count)
            job.deadline = time.monotonic() + self._limits.seconds
            before = sum(one.work for one in self._sentences if one.job.place < job.place)
            before += self._running
            # With nothing before it a job is let in whatever is expected: that may be wrong.
            if before and self._takes(before + sum(job.work)) > _ROOM * self._limits.seconds:
                raise Late
            self._sentences += [Sentence(job, index) for index in range(len(job.texts))]
            self._changed.notify()

    def take(self) -> list[Sentence] | None:
        """The next sentences to compute, short ones first; waits for some. None: closed and empty.

        They have one task. One of them is the first of the queue.
        """
        with self._changed:
            while True:
                while not self._sentences and not self._closed:
                    self._changed.wait()
                if not self._sentences:
                    return None
                self._gather()
                self._refuse_late()
                if self._sentences:  # they may have been abandoned meanwhile
                    return self._batch()

    def finished(self, batch: Sequence[Sentence], seconds: float) -> None:
        """Say how long the model took for what was taken last."""
        work = sum(one.work for one in batch)
        with self._changed:
            self._running = 0
            if self._full:  # a model with little to do is much slower for each piece
                self._done = _MEMORY * self._done + work
                self._seconds = _MEMORY * self._seconds + seconds
            jobs = {one.job for one in (*batch, *self._sentences)}
            self._shared += work / len(jobs)

    def abandon(self, job: Job) -> None:
        """Drop what is left of a job: nobody waits for it any more."""
        with self._changed:
            job.future.cancel()
            self._drop(job)

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
            self._drop(job)

    def close(self) -> None:
        """Nothing will be put any more: ``take`` ends when what waits has been taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _takes(self, work: float) -> float:
        """Seconds for some work, as things went of late when there was much to do; else 0."""
        return work * self._seconds / self._done if self._done else 0.0

    def _drop(self, job: Job) -> None:
        self._sentences = [one for one in self._sentences if one.job is not job]

    def _gather(self) -> None:
        """Wait a moment for a full batch."""
        end = time.monotonic() + self._limits.gather
        while not self._closed and len(self._sentences) < self._limits.together:
            left = end - time.monotonic()
            if left <= 0 or not self._changed.wait(left):
                return

    def _refuse_late(self) -> None:
        """Fail the jobs that are not begun and cannot be in time."""
        left: dict[Job, int] = {}
        for one in self._sentences:
            left[one.job] = left.get(one.job, 0) + one.work
        now = time.monotonic()
        before = 0
        for job in sorted(left, key=lambda job: job.place):
            late = now + self._takes(before + left[job]) > job.deadline
            if late and before and not job.begun:
                self.fail(job, Late())
            else:
                before += left[job]

    def _batch(self) -> list[Sentence]:
        first = min(self._sentences, key=lambda one: one.place)
        # Much longer ones would hold it up.
        most = 2 * first.work + self._limits.padded // self._limits.together
        alike = [
            one
            for one in self._sentences
            if one.job.task == first.job.task and (one.work <= most or one is first)
        ]
        alike.sort(key=lambda one: one.place)
        batch: list[Sentence] = []
        longest = 0
        for one in alike[: self._limits.together]:
            longest = max(longest, one.work)
            if batch and longest * (len(batch) + 1) > self._limits.padded:
                break
            batch.append(one)
            one.job.begun = True
        self._running = sum(one.work for one in batch)
        taken = set(map(id, batch))
        self._sentences = [one for one in self._sentences if id(one) not in taken]
        self._full = bool(self._sentences)
        return sorted(batch, key=lambda one: (one.work, one.place))
