"""Side by side, but as if one after the other."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.inference import torch_engine
from kakehashi.inference.options import MinimumRisk, Options
from kakehashi.inference.side_by_side import side_by_side
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator

LINES = [f"Das ist Satz Nummer {n}." + " Und noch etwas." * (n % 5) for n in range(23)]
PATIENCE = 60.0
"""Seconds after which a test that waits for another thread has failed."""


@pytest.fixture
def threads() -> Iterator[None]:
    """What a test sets is set back."""
    number = torch.get_num_threads()
    yield
    torch.set_num_threads(number)


def nothing() -> None:
    """To begin with."""


def working() -> list[threading.Thread]:
    """Threads of a search that have not ended."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("search")]


def test_results_come_in_order_whichever_is_ready_first() -> None:
    second = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert second.wait(PATIENCE)
        if item == 1:
            second.set()
        return item * item

    found = list(side_by_side(work, range(7), 2, nothing, nothing))
    assert found == [item * item for item in range(7)]


def test_as_many_as_there_are_threads_work_at_the_same_time() -> None:
    everyone = threading.Barrier(3)
    begun: list[str] = []
    all_begun: list[int] = []

    def work(_: int) -> str:
        everyone.wait(PATIENCE)
        return threading.current_thread().name

    def begin() -> None:
        begun.append(threading.current_thread().name)

    names = list(side_by_side(work, range(6), 3, begin, lambda: all_begun.append(len(begun))))
    assert len(set(names)) == 3
    assert sorted(begun) == sorted(set(names))
    assert all_begun == [3]
    assert not working()


@pytest.mark.parametrize(("items", "threads"), [(5, 1), (1, 4), (0, 4)])
def test_alone_or_one_at_a_time_the_caller_works_himself(items: int, threads: int) -> None:
    def begin() -> None:
        raise AssertionError("no thread is to begin")

    def work(_: int) -> threading.Thread:
        return threading.current_thread()

    found = list(side_by_side(work, range(items), threads, begin, begin))
    assert found == [threading.current_thread()] * items


def test_an_error_comes_in_its_turn_and_nothing_begins_after_it() -> None:
    begun: list[int] = []
    go_on = threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        if item == 3:
            raise ValueError("the third")
        assert item < 3 or go_on.wait(PATIENCE)
        return item

    results = side_by_side(work, range(1000), 2, nothing, nothing)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    threading.Timer(0.2, go_on.set).start()
    with pytest.raises(ValueError, match="the third"):
        next(results)
    assert len(begun) <= 7  # as far ahead as is ever read
    assert not working()


def test_when_nobody_asks_for_more_nothing_begins_any_more() -> None:
    begun: list[int] = []
    go_on = threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        assert item == 0 or go_on.wait(PATIENCE)
        return item

    results = side_by_side(work, range(1000), 2, nothing, nothing)
    assert next(results) == 0
    threading.Timer(0.2, go_on.set).start()
    results.close()  # type: ignore[attr-defined]
    assert len(begun) <= 3
    assert not working()


def failing() -> None:
    raise RuntimeError("not so soon")


@pytest.mark.parametrize(("begin", "begun"), [(failing, nothing), (nothing, failing)])
def test_nobody_waits_for_a_thread_that_cannot_begin(
    begin: Callable[[], None], begun: Callable[[], None]
) -> None:
    with pytest.raises(RuntimeError):
        list(side_by_side(str, range(9), 2, begin, begun))
    assert not working()


@pytest.mark.parametrize(
    ("together", "most", "batches", "workers", "share"),
    [(2, 8, 6, 2, 1), (5, 4, 6, 2, 2), (4, 2, 6, 2, 2), (8, 8, 2, 2, 4), (3, 8, 6, 3, 1)],
)
def test_cores_are_shared_among_batches(
    threads: None,
    saved: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    together: int,
    most: int,
    batches: int,
    workers: int,
    share: int,
) -> None:
    monkeypatch.setattr(torch_engine, "SIDE_BY_SIDE", most)
    engine = Translator.load(saved["transformer"]).engine
    torch.set_num_threads(together)
    everyone = threading.Barrier(workers)

    def work(_: int) -> tuple[str, int]:
        everyone.wait(PATIENCE)
        return threading.current_thread().name, torch.get_num_threads()

    results = engine.each(work, range(batches))
    found = [next(results)]
    later: list[int] = []  # while the others are still at it
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [torch.get_num_threads()] == [together]
    found += results
    assert len({name for name, _ in found}) == workers
    assert {number for _, number in found} == {share}
    assert torch.get_num_threads() == together


@pytest.mark.parametrize(
    "options",
    [
        Options(n_best=2, batch_size=3),
        Options(beam=1, batch_size=2, details=True),
        Options(method=MinimumRisk(samples=4), batch_size=3),
    ],
    ids=["beam", "details", "minimum risk"],
)
def test_translations_are_the_same_on_any_number_of_threads(
    threads: None, kind: str, saved: dict[str, Path], options: Options
) -> None:
    translator = Translator.load(saved[kind])
    torch.set_num_threads(1)
    alone = translator.translate(LINES, options)
    torch.set_num_threads(3)
    together = translator.translate(LINES, options)
    assert [t.text for t in alone] == [t.text for t in together]
    for one, other in zip(alone, together, strict=True):
        assert [h.tokens for h in one.hypotheses] == [h.tokens for h in other.hypotheses]
        assert [h.score for h in one.hypotheses] == pytest.approx(
            [h.score for h in other.hypotheses], abs=1e-5
        )


def test_lines_before_an_error_have_come_out(
    threads: None, saved: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches go by length: the longest line is in the last."""
    torch.set_num_threads(2)
    search = TorchEngine.search

    def failing(self: TorchEngine, rows: list[list[int]], **how: object) -> list[list[Hypothesis]]:
        if len(rows[0]) > 15:
            raise RuntimeError("no memory")
        return search(self, rows, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(TorchEngine, "search", failing)
    translator = Translator.load(saved["transformer"])
    lines = ["der Hund", "die Katze schläft", "der Hund und die Katze sehen " * 5]
    stream = translator.stream(lines, Options(batch_size=1 + 1, beam=2))
    assert len([next(stream) for _ in range(2)]) == 2
    with pytest.raises(RuntimeError, match="no memory"):
        next(stream)
