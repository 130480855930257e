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
from kakehashi.serving.waiting import Full, Job, Late, Waiting

TASKS: list[Task] = [
    Scoring(),
    Aligning(),
    Translating(Options(beam=2)),
    Translating(Options(beam=3)),
]


def job(lengths: list[int], task: Task = TASKS[0]) -> Job:
    texts: list[Text] = [Request("x" * length) for length in lengths]
    return Job(task, texts, lengths)


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
        sizes = [sentence.work for sentence in batch]
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
        queue.finished([*first, *second], 0.1)
        served = [sentence.job for sentence in (*first, *second)]
        assert served.count(long) == served.count(short[turn]) == 1


def test_nobody_is_overtaken_for_ever() -> None:
    queue = waiting(together=1)
    long = job([30])
    queue.put(long)
    overtaken = 0
    while True:
        queue.put(job([2]))
        batch = queue.take()
        assert batch is not None
        queue.finished(batch, 0.1)
        if batch[0].job is long:
            break
        overtaken += 1
    # half of the model would have given it 30 by the time of 30 short ones
    assert 25 <= overtaken <= 30


def test_neighbours_in_length_go_together() -> None:
    queue = waiting(together=3)
    for length in (10, 25, 11, 3, 9, 40):
        queue.put(job([length]))
    sizes = []
    for _ in range(2):
        batch = queue.take()
        assert batch is not None
        sizes.append([sentence.work for sentence in batch])
    assert sizes == [[3, 9, 10], [11, 25, 40]]


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
    begun = queue.take()
    queue.put(other)
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


def test_what_has_begun_ends_before_what_is_as_old_begins() -> None:
    queue = waiting(together=4)
    jobs = [job([5] * 8), job([5] * 8), job([5] * 8)]
    for one in jobs:
        queue.put(one)
    order = []
    for _ in range(6):
        batch = queue.take()
        assert batch is not None
        queue.finished(batch, 0.0)
        order += [sentence.job for sentence in batch]
    assert order == [one for one in jobs for _ in range(8)]


def test_a_short_request_overtakes_long_ones_of_which_some_are_done() -> None:
    queue = waiting(together=4)
    for _ in range(6):
        queue.put(job([5] * 8))
    for _ in range(4):  # two of the six
        batch = queue.take()
        assert batch is not None
        queue.finished(batch, 0.1)
    short = job([5])
    queue.put(short)
    batch = queue.take()
    assert batch is not None and batch[0].job is short


def test_what_cannot_be_in_time_is_refused() -> None:
    queue = waiting(together=4, seconds=10.0)
    first = job([5] * 4)
    queue.put(first)
    others = [job([5] * 4) for _ in range(9)]
    for one in others:  # nothing is known yet: all are let in
        queue.put(one)
    batch = queue.take()
    assert batch is not None
    queue.finished(batch, 3.0)  # so there is time for three more
    queue.take()
    assert [one.future.done() for one in others] == [False] * 3 + [True] * 6
    assert all(isinstance(one.future.exception(), Late) for one in others[3:])
    with pytest.raises(Late):
        queue.put(job([5] * 4))
    queue.put(job([1]))  # it comes before the long ones


def test_a_long_text_does_not_share_a_batch_with_short_ones_before_it() -> None:
    queue = waiting(together=8, padded=80)
    for length in (3, 4, 70):
        queue.put(job([length]))
    batch = queue.take()
    assert batch is not None and [sentence.work for sentence in batch] == [3, 4]


def test_how_long_a_lone_sentence_takes_says_nothing_of_many() -> None:
    queue = waiting(together=4, seconds=10.0)
    queue.put(job([5]))
    batch = queue.take()
    assert batch is not None
    queue.finished(batch, 3.0)
    for _ in range(9):
        queue.put(job([5] * 4))  # nobody is refused
    assert queue.seconds == 0
