"""Side by side, but as if one after the other."""

import threading
from collections.abc import Iterator
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


def test_results_come_in_order_whichever_is_ready_first() -> None:
    second = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert second.wait(PATIENCE)
        if item == 1:
            second.set()
        return item * item

    assert list(side_by_side(work, range(7), 2, nothing)) == [item * item for item in range(7)]


def test_as_many_as_there_are_threads_work_at_the_same_time() -> None:
    everyone = threading.Barrier(3)
    begun: list[str] = []

    def work(_: int) -> str:
        everyone.wait(PATIENCE)
        return threading.current_thread().name

    names = list(
        side_by_side(work, range(6), 3, lambda: begun.append(threading.current_thread().name))
    )
    assert len(set(names)) == 3
    assert sorted(begun) == sorted(set(names))


@pytest.mark.parametrize(("items", "threads"), [(5, 1), (1, 4), (0, 4)])
def test_alone_or_one_at_a_time_the_caller_works_himself(items: int, threads: int) -> None:
    def begin() -> None:
        raise AssertionError("no thread is to begin")

    found = list(side_by_side(lambda _: threading.current_thread(), range(items), threads, begin))
    assert found == [threading.current_thread()] * items


def test_an_error_comes_in_its_turn_and_nothing_begins_after_it() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 3:
            raise ValueError("the third")
        return item

    results = side_by_side(work, range(1000), 2, nothing)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="the third"):
        next(results)
    number = len(begun)
    assert number < 1000
    assert threading.active_count() == 1
    assert len(begun) == number


def test_when_nobody_asks_for_more_nothing_begins_any_more() -> None:
    begun: list[int] = []
    go_on = threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        assert item == 0 or go_on.wait(PATIENCE)
        return item

    results = side_by_side(work, range(1000), 2, nothing)
    assert next(results) == 0
    threading.Timer(0.2, go_on.set).start()
    results.close()  # type: ignore[attr-defined]
    assert len(begun) <= 3


@pytest.mark.parametrize(
    ("together", "most", "working", "share"), [(2, 8, 2, 1), (5, 4, 2, 2), (4, 2, 2, 2)]
)
def test_cores_are_shared_among_batches(
    threads: None,
    saved: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    together: int,
    most: int,
    working: int,
    share: int,
) -> None:
    monkeypatch.setattr(torch_engine, "SIDE_BY_SIDE", most)
    engine = Translator.load(saved["transformer"]).engine
    torch.set_num_threads(together)
    everyone = threading.Barrier(working)

    def work(_: int) -> tuple[str, int]:
        everyone.wait(PATIENCE)
        return threading.current_thread().name, torch.get_num_threads()

    found = list(engine.each(work, range(2 * working)))
    assert len({name for name, _ in found}) == working
    assert {number for _, number in found} == {share}
    assert torch.get_num_threads() == together
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [together]


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
