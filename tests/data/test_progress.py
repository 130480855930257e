import pytest

from kakehashi.data import progress
from kakehashi.data.progress import Meter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which only passes when a test says so."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_count_rate_and_time_left(clock: list[float], capsys) -> None:
    with Meter("Reading train", "lines", 4_000_000) as meter:
        for _ in meter.over(range(6000)):
            meter.did(500)
            clock[0] += 0.003
    said = capsys.readouterr().err.splitlines()
    # At the first look after ten seconds, and at the end.
    assert said == [
        "Reading train: 4,000 lines, 333 lines/s, 12 s left",
        "Reading train: 6,000 lines in 18.0 s, 333 lines/s",
    ]


def test_the_time_left_is_that_of_the_work(clock: list[float]) -> None:
    meter = Meter("Tokenising", "sentences", 400)
    assert meter.text() == "0 sentences, 0 sentences/s"
    assert list(meter.over("abcde", work=20)) == list("abcde")
    clock[0] += 3
    assert meter.text() == "5 sentences, 2 sentences/s, 9 s left"
    meter.did(300)
    assert meter.text() == "5 sentences, 2 sentences/s"


def test_short_work_says_nothing(clock: list[float], capsys) -> None:
    with Meter("Reading", "lines", 10) as meter:
        meter.count(10)
        clock[0] += 0.5
    assert capsys.readouterr().err == ""


def test_work_that_fails_says_nothing_more(clock: list[float], capsys) -> None:
    def fail() -> None:
        with Meter("Reading", "lines", 10):
            clock[0] += 5
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert capsys.readouterr().err == ""
