"""Words of a text, and which stands for which."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.inference.links import word_links, word_spans


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Der alte E-Mail-Kasten, don't!", ["Der", "alte", "E-Mail-Kasten", ",", "don't", "!"]),
        ("(„ja“) - 3,5 %", ["(", "„", "ja", "“", ")", "-", "3", ",", "5", "%"]),
        ("हिन्दी e\u0301 👩\u200d👧", ["हिन्दी", "e\u0301", "👩\u200d👧"]),
        ("'ja' -x", ["'", "ja", "'", "-", "x"]),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in word_spans(text)] == expected


def test_pieces_cut_only_what_is_written_without_spaces() -> None:
    text = "月が昇る AIの本 Haus"
    cuts = [1, 2, 6, 7, 8, 12]
    words = [text[start:end] for start, end in word_spans(text, cuts)]
    assert words == ["月", "が", "昇る", "A" + "I", "の", "本", "Haus"]


@given(text=st.text(st.sampled_from("ab -'é\u0301.漢 \u3000\u200d👩"), max_size=20))
def test_words_are_all_of_a_text_but_its_white_space(text: str) -> None:
    spans = word_spans(text, range(len(text)))
    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())
    assert all(start < end for start, end in spans)
    assert spans == sorted(spans)


def test_a_word_looks_where_its_pieces_do_together() -> None:
    source, text = "ab cd .", "xy . z"
    source_pieces = [(0, 1), (1, 2), (2, 4), (4, 5), (5, 7)]
    pieces = [(0, 1), (1, 2), (2, 4), (4, 6)]
    attention = np.array(
        [
            [0.1, 0.1, 0.3, 0.2, 0.2, 0.1],  # x: "cd" 0.5
            [0.3, 0.3, 0.1, 0.0, 0.2, 0.1],  # y: "ab" 0.6, together "ab" 0.8, "cd" 0.6
            [0.5, 0.3, 0.1, 0.0, 0.0, 0.1],  # . stands for its like
            [0.0, 0.0, 0.2, 0.3, 0.1, 0.4],
            [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],  # EOS
        ],
        np.float32,
    )
    links = word_links(text, pieces, source, source_pieces, attention)
    assert [tuple(link) for link in links] == [(0, 2, 0, 2), (3, 4, 6, 7), (5, 6, 3, 5)]
    assert word_links(text, pieces, "", [], attention[:, 5:]) == []
    # What is kept is one word.
    (link,) = word_links(text, pieces, source, source_pieces, attention, [re.compile("y . z")])
    assert link[:2] == (0, 6)
