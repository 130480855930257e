"""What a tokenizer makes of a corpus."""

from typing import Any

import pytest

from kakehashi.audit import Text
from kakehashi.audit.subwords import in_pieces
from kakehashi.data.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def lines(small_corpus: Any) -> list[str]:
    return [*small_corpus.source, *small_corpus.target]


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_unknown_characters_are_counted(lines: list[str], byte_fallback: bool) -> None:
    size = 401 if byte_fallback else 160
    tokenizer = Tokenizer.train(lines, vocab_size=size, byte_fallback=byte_fallback)
    source = ["Der Hund schläft.", "Der 猫 schläft 猫 犬.", "<0x41>"]
    target = ["The dog sleeps."] * 3
    statistics, (finding, *rest) = in_pieces(Text(source, target, range(1, 4)), tokenizer)
    assert (finding.code, finding.side, finding.severity) == (
        "tokenizer.unknown",
        "source",
        "warning",
    )
    assert rest == []
    assert 2 in finding.lines
    assert finding.examples[finding.lines.index(2)].detail == "猫 犬"
    of_source, of_target = statistics
    assert dict(of_source.most_unknown)["猫"] == 2
    assert of_source.pieces == sum(len(tokenizer.encode(line)) for line in source)
    assert (of_target.unknown, of_target.characters) == (0, 45)
    assert "Hund" not in "".join(character for character, _ in of_source.most_unknown)
