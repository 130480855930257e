"""The queue: each sentence once, one task a batch, and nobody waits for ever."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.inference.options import Options
from kakehashi.inference.request import Request
from kakehashi.serving.limits import Limits
from kakehashi.serving.schema import Scored
from kakehashi.serving.tasks import Aligning, Scoring, Task, Text, Translating
from kakehashi.serving.waiting import Full, Job, Waiting

TASKS: list[Task] = [
    Scoring(),
    Aligning(),
    Translating(Options(beam=2)),
    Translating(Options(beam=3)),
]


def job(lengths: list[int], task: Task = TASKS[0]) -> Job:
    texts: list[Text] = [Request("x" * length) for length in lengths]
    return Job(task, texts)


def waiting(**given: Any) -> Waiting:
    return Waiting(Limits(**{"gather": 0.0, "lines": 1, "queue": 1000} | given))


def scored(number: int) -> Scored:
    return Scored(log_probability=number, perplexity=1, tokens=[], token_log_probabilities=[])


jobs = st.lists(
    st.tuples(st.sampled_from(TASKS), st.lists(st.integers(0, 30), min_size=1, max_size=7)),
    min_size=1,
    max_size=9,
)


@given(jobs, st.integers(1, 5), st.integers(1, 60))
def test_every_sentence_goes_once_within_the_bounds(
    given_jobs: list[tuple[Task, list[int]]], together: int, padded: int
) -> None:
    queue = waiting(together=together, padded=padded)
    made = [job(lengths, task) for task, lengths in given_jobs]
    for one in made:
        queue.put(one)
    queue.close()
    seen = []
    while (batch := queue.take()) is not None:
        assert len({sentence.job.task for sentence in batch}) == 1
        sizes = [sentence.size for sentence in batch]
        assert sizes == sorted(sizes)
        assert len(batch) <= together
        assert len(batch) == 1 or max(sizes) * len(batch) <= padded
        for sentence in batch:
            seen.append((made.index(sentence.job), sentence.index))
            queue.deliver(sentence, scored(len(seen)))
    assert sorted(seen) == [(j, i) for j, one in enumerate(made) for i in range(len(one.texts))]
    order = {at: number for number, at in enumerate(seen, 1)}
    for j, one in enumerate(made):
        answers = [answer.log_probability for answer in one.future.result(0)]  # type: ignore[union-attr]
        assert answers == [order[j, i] for i in range(len(one.texts))]


def test_a_long_request_holds_up_nobody_and_is_not_held_up() -> None:
    queue = waiting(together=1, gather=0.0)
    long = job([5] * 20)
    queue.put(long)
    short = []
    for turn in range(10):  # somebody asks for one sentence again and again
        short.append(job([5]))
        queue.put(short[-1])
        first, second = queue.take(), queue.take()
        assert first is not None and second is not None
        served = [sentence.job for sentence in (*first, *second)]
        assert served.count(long) == served.count(short[turn]) == 1


def test_the_first_of_the_queue_is_always_in_the_batch() -> None:
    queue = waiting(together=3)
    queue.put(job([30]))
    for _ in range(9):
        queue.put(job([2]))
    batch = queue.take()
    assert batch is not None and 30 in [sentence.size for sentence in batch]


def test_neighbours_in_length_go_together() -> None:
    queue = waiting(together=3)
    for length in (10, 25, 11, 3, 9, 40):
        queue.put(job([length]))
    sizes = []
    for _ in range(2):
        batch = queue.take()
        assert batch is not None
        sizes.append([sentence.size for sentence in batch])
    assert sizes == [[9, 10, 11], [3, 25, 40]]


def test_there_is_room_for_all_of_a_job_or_for_none() -> None:
    queue = waiting(queue=5)
    queue.put(job([1, 1, 1]))
    with pytest.raises(Full):
        queue.put(job([1, 1, 1]))
    assert len(queue) == 3
    queue.put(job([1, 1]))
    assert len(queue) == 5


def test_what_is_abandoned_is_dropped_and_makes_room() -> None:
    queue = waiting(queue=4, together=1)
    one, other = job([1, 1, 1]), job([1])
    queue.put(one)
    queue.put(other)
    begun = queue.take()
    assert begun is not None and begun[0].job is one
    queue.abandon(one)
    assert len(queue) == 1
    queue.deliver(begun[0], scored(1))  # nobody minds
    assert one.future.cancelled()
    batch = queue.take()
    assert batch is not None and batch[0].job is other


def test_an_idle_worker_waits_a_moment_for_company() -> None:
    queue = waiting(gather=5.0, together=2)
    queue.put(job([1]))
    late = threading.Timer(0.05, lambda: queue.put(job([1])))
    late.start()
    batch = queue.take()
    late.join()
    assert batch is not None and len(batch) == 2
