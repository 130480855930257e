"""The best extensions against a full log softmax and a full sort."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.decoding.candidates import FIRST, Pieces, best_column, best_extensions
from kakehashi.decoding.ranking import RankedRows, stable_top
from kakehashi.symbols import BOS, EOS, PAD, UNK


def test_what_is_never_generated_stands_before_eos() -> None:
    assert {PAD, UNK, BOS} == set(range(FIRST))
    assert FIRST == EOS


@given(
    rows=st.lists(st.lists(st.integers(-2, 2), min_size=17, max_size=17), min_size=1, max_size=5),
    k=st.integers(1, 20),
)
def test_equals_come_in_the_order_of_their_places(rows: list[list[int]], k: int) -> None:
    values, places = stable_top(torch.tensor(rows, dtype=torch.float32), k)
    for row, chosen, value in zip(rows, places.tolist(), values.tolist(), strict=True):
        assert chosen == sorted(range(17), key=lambda place: (-row[place], place))[:k]
        assert value == [row[place] for place in chosen]


@given(seed=st.integers(0, 10**6), beam=st.integers(1, 40))
def test_equals_the_best_of_a_full_log_softmax(seed: int, beam: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows = min(beam, 3)
    logits = 3 * torch.randn(2, rows, 13, generator=generator)
    live = -5 * torch.rand(2, rows, generator=generator)
    live[1, 2:] = -torch.inf
    step = best_extensions(logits, live, beam)
    scores = (logits.log_softmax(-1) + live.unsqueeze(-1))[..., FIRST:]
    for best, of_all in ((step.first, scores), (step.going, scores[..., 1:])):
        first = 13 - of_all.shape[-1]
        expected, places = of_all.flatten(1).sort(dim=1, descending=True, stable=True)
        width = min(beam, rows * (13 - first))
        expected, places = expected[:, :width], places[:, :width]
        assert best.token.shape[1] == min(beam, rows * (13 - FIRST))
        real = expected > -torch.inf
        torch.testing.assert_close(best.competing[:, :width][real], expected[real])
        assert torch.equal(best.row[:, :width][real], (places // (13 - first))[real])
        assert torch.equal(best.token[:, :width][real], (places % (13 - first) + first)[real])
        assert torch.equal(best.log_probability, best.competing)


def test_half_precision_logits_are_scored_in_single() -> None:
    logits = torch.randn(1, 2, 19).to(torch.bfloat16)
    best = best_extensions(logits, torch.zeros(1, 2), 3).first
    assert best.log_probability.dtype == torch.float32
    full = logits.float().log_softmax(-1)[..., FIRST:].flatten()
    torch.testing.assert_close(best.log_probability[0], full.sort(descending=True).values[:3])


@pytest.mark.parametrize("size", [1 << 9, 1000, 3001])
@pytest.mark.parametrize("levels", [3, 40, 10**6])
def test_many_pieces_are_ranked_as_a_stable_sort_ranks_them(size: int, levels: int) -> None:
    """So many that they are looked through in two stages; few levels make many draws."""
    generator = torch.Generator().manual_seed(size + levels)
    logits = torch.randint(levels, (5, 2, size), generator=generator).float()
    logits[1, 1] = -torch.inf
    logits[1, 1, 77] = 0.0
    for k in (1, 2, 5, 30):
        values, tokens = stable_top(logits, k)
        expected, order = logits.sort(dim=-1, descending=True, stable=True)
        assert torch.equal(values, expected[..., :k])
        assert torch.equal(tokens, order[..., :k])
    first = logits[..., FIRST:].sort(dim=-1, descending=True, stable=True).indices[..., :1] + FIRST
    assert torch.equal(best_column(logits.flatten(0, 1)), first.flatten(0, 1))


@pytest.mark.parametrize("size", [53, 256, 257, 331, 1000, 3001])
@pytest.mark.parametrize("levels", [2, 40, 10**6])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_sentences_rows_are_ranked_among_each_other(size: int, levels: int, rows: int) -> None:
    generator = torch.Generator().manual_seed(size + levels + rows)
    scores = torch.randint(levels, (7, rows, size), generator=generator).float()
    scores[1, -1] = -torch.inf
    scores[1, -1, 42] = 0.0
    scores[2, 0, size - 1] = scores[3, -1, FIRST] = float(levels)
    plus = torch.randint(-3, 3, (7, rows), generator=generator).float()
    plus[4, 1:] = -torch.inf
    for first in (0, FIRST):
        ranked = RankedRows(scores, first)
        every = scores[..., first:] + plus.unsqueeze(-1)
        expected, order = every.flatten(1).sort(dim=1, descending=True, stable=True)
        for k in (1, 2, 10, 24, 70):
            values, row, piece = ranked.best(plus, k)
            assert torch.equal(values, expected[:, :k])
            assert torch.equal(row, order[:, :k] // (size - first))
            assert torch.equal(piece, order[:, :k] % (size - first) + first)
        peak = scores.gather(-1, ranked.greatest().unsqueeze(-1)).squeeze(-1)
        assert torch.equal(peak, scores[..., first:].amax(dim=-1))


def test_of_some_pieces_the_extensions_are_told_by_the_pieces_own_numbers() -> None:
    """As if all others had no probability at all."""
    logits = torch.randn(2, 3, 700)
    some = torch.tensor(sorted({UNK, EOS, *range(5, 700, 2)}))
    alone = logits.clone()
    alone[..., [piece for piece in range(700) if piece not in some]] = -torch.inf
    live = -torch.rand(2, 3)
    step = best_extensions(logits[..., some], live, 5, Pieces.of(some))
    expected = best_extensions(alone, live, 5)
    assert torch.equal(step.first.token, expected.first.token)
    assert torch.equal(step.going.row, expected.going.row)
    torch.testing.assert_close(step.first.competing, expected.first.competing)
    best = best_column(logits[:, 0, some], Pieces.of(some))
    assert torch.equal(some[best], best_column(alone[:, 0]))


@pytest.mark.parametrize("size", [5, 130, 131, 259, 260, 386, 387, 388, 514])
def test_the_best_piece_is_found_wherever_it_stands(size: int) -> None:
    """At every place, and so among equals of which some are of the rest that fills no line."""
    logits = torch.zeros(2 * size, size)
    logits[torch.arange(size), torch.arange(size)] = 1.0
    logits[size:, :][torch.ones(size, size).triu().bool()] = 1.0
    best = best_column(logits)[:, 0]
    expected = [max(piece, FIRST) for piece in range(size)]
    assert best.tolist() == expected * 2
