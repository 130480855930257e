"""What an exported model is checked on where nobody gives a text: drawn from its own vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kakehashi.data.reading import is_blank
from kakehashi.data.tokenizer import Tokenizer

DRAWN = 96
"""Sentences of drawn pieces."""
SEED = 1
ODD = (
    "a",
    "A b C d E f",
    "1234567890 ½ ² №",
    "der </s> <pad> Hund <unk> <s>",
    "  two  spaces, and \t a tab  ",
    "👨\u200d👩\u200d👧 \U0001f436",
    "猫が座る。 Η γάτα. Кошка.",
    "https://example.org/?a=1&b=2#c",
    "e\u0301 \u00e9 \u200b \u00ad",
    "!?!?!? ... ((()))",
)
"""Lines that few texts have: reserved pieces written out, other scripts, marks, spaces."""


@dataclass(frozen=True)
class CheckSet:
    """Lines to translate with both models."""

    name: str
    """What to call it to people."""
    source: Sequence[str]
    reference: Sequence[str] | None = None


def drawn_check_set(tokenizer: Tokenizer, max_length: int) -> CheckSet:
    """Sequences of the vocabulary's pieces, of 1 to ``2 max_length`` pieces, and odd lines.

    Pieces that stand earlier in the vocabulary, where the frequent ones are, are drawn more often
    (by 1 / rank, as words are). It is no language: what is translated from it is rubbish, on which
    two models agree only if they compute the same.
    """
    random = np.random.default_rng(SEED)
    pieces = np.array(tokenizer.ordinary_pieces())
    chances = 1.0 / np.arange(1, len(pieces) + 1)
    chances /= chances.sum()
    lines = list(ODD)
    lengths = np.geomspace(1, max(max_length - 1, 1), DRAWN - 2).astype(int)
    for length in [*lengths, max_length + 1, 2 * max_length]:
        text = tokenizer.decode(random.choice(pieces, int(length), p=chances).tolist())
        lines.append(" ".join(text.split()))
    kept = [line for line in lines if not is_blank(line)]
    return CheckSet(f"{len(kept)} lines drawn from the model's own vocabulary", kept)
