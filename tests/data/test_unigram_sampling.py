"""Drawn segmentations against all segmentations, enumerated."""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.unigram_sampling import UnigramSampling


@pytest.fixture(scope="module")
def tokenizer(text: list[str]) -> Tokenizer:
    return Tokenizer.train(text, vocab_size=550, character_coverage=1.0)


@pytest.fixture(scope="module")
def drawn(redrawn) -> Callable[..., list[list[int]]]:
    def draw(tokenizer: Tokenizer, texts: list[str], alpha: float, rows=None) -> list[list[int]]:
        return redrawn(tokenizer, lambda s: UnigramSampling(tokenizer, s, alpha), texts, rows)

    return draw


def test_a_large_alpha_gives_the_likeliest_pieces(
    tokenizer: Tokenizer, text: list[str], drawn
) -> None:
    scores, rows = tokenizer.scores(), drawn(tokenizer, text, 1e5)
    for row, plain in zip(rows, tokenizer.encode_batch(text), strict=True):
        # other pieces only where they are as likely
        assert scores[row].sum() == pytest.approx(scores[plain].sum(), abs=1e-4)
    same = sum(a == b for a, b in zip(rows, tokenizer.encode_batch(text), strict=True))
    assert same > 0.9 * len(text)


def test_every_draw_spells_the_text(tokenizer: Tokenizer, text: list[str], drawn) -> None:
    for alpha in (0.0, 0.3):
        assert tokenizer.decode_batch(drawn(tokenizer, text, alpha)) == text


def segmentations(word: str, pieces: dict[str, float]) -> Iterator[tuple[str, ...]]:
    if not word:
        yield ()
    for end in range(1, len(word) + 1):
        if word[:end] in pieces:
            yield from ((word[:end], *rest) for rest in segmentations(word[end:], pieces))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_segmentations_are_as_likely_as_the_model_says(small_corpus, alpha: float, drawn) -> None:
    text = [*small_corpus.source, *small_corpus.target]
    tokenizer = Tokenizer.train(text, vocab_size=550)
    names, scores = tokenizer.pieces(range(550)), tokenizer.scores()
    pieces = {names[i]: float(scores[i]) for i in tokenizer.ordinary_pieces()}
    words = {w for line in text for w in line.split() if 4 < len(w) < 9}
    word = max(sorted(words), key=lambda w: len(list(segmentations(f"▁{w}", pieces))))
    every = list(segmentations(f"▁{word}", pieces))
    assert len(every) > 8
    weight = np.exp([alpha * sum(pieces[piece] for piece in x) for x in every])
    n = 20_000
    got = Counter(tuple(tokenizer.pieces(row)) for row in drawn(tokenizer, [word] * n, alpha))
    assert got.keys() <= set(every)
    for x, probability in zip(every, weight / weight.sum(), strict=True):
        deviation = np.sqrt(n * probability * (1 - probability)) + 1
        assert abs(got[x] - n * probability) < 5 * deviation, x


def test_a_draw_depends_on_its_own_sentence_and_key_alone(tokenizer, text, drawn) -> None:
    together = drawn(tokenizer, text, 0.3)
    for k in (0, 17, 41):
        assert drawn(tokenizer, [text[k]], 0.3, [k]) == [together[k]]
    assert drawn(tokenizer, text, 0.3, range(1, len(text) + 1)) != together


def test_a_long_run_does_not_underflow(tokenizer: Tokenizer, text: list[str], drawn) -> None:
    longest = max("".join(text).split(), key=len)
    word = (longest * 200)[:700]
    assert tokenizer.decode(drawn(tokenizer, [word], 1.0)[0]) == word
