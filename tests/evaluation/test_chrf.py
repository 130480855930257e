"""chrF of all pairs against sacreBLEU's, one pair at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import sentence_chrf

from kakehashi.evaluation.chrf import pairwise_chrf

TEXT = st.text(alphabet="abAé .\u3000橋", max_size=12)


@given(
    hypotheses=st.lists(TEXT, min_size=1, max_size=4),
    references=st.lists(TEXT, min_size=1, max_size=4),
)
def test_every_pair_has_sacrebleus_number(hypotheses: list[str], references: list[str]) -> None:
    scores = pairwise_chrf(hypotheses, references)
    assert scores.shape == (len(hypotheses), len(references))
    for row, hypothesis in zip(scores, hypotheses, strict=True):
        for score, reference in zip(row, references, strict=True):
            expected = sentence_chrf(hypothesis, [reference]).score
            assert score == pytest.approx(expected, abs=1e-9)


def test_of_a_sentence_and_another_one() -> None:
    texts = ["The bridge is old.", "The bridge was old.", "Nobody crossed the river."]
    scores = pairwise_chrf(texts, texts)
    assert np.allclose(np.diag(scores), 100)
    assert scores[0, 1] > 50 > scores[0, 2] > 0
