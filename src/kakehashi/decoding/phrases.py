"""Forced prefixes and forbidden phrases. Shapes as in ``decoding.competition``."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kakehashi.decoding.rules import Phrase
from kakehashi.symbols import PAD

NONE = -1
"""Stands where a table of phrases has no piece."""


def phrase_table(
    phrases: Sequence[Sequence[Phrase]], device: torch.device
) -> Int[Tensor, "S P longest"]:
    """The phrases of S sentences, up to P each, filled up with ``NONE``."""
    most = max(map(len, phrases))
    longest = max((len(phrase) for group in phrases for phrase in group), default=0)
    rows = [
        [[*phrase, *[NONE] * (longest - len(phrase))] for phrase in group]
        + [[NONE] * longest] * (most - len(group))
        for group in phrases
    ]
    return torch.tensor(rows, dtype=torch.int64, device=device).view(len(rows), most, longest)


@dataclass(frozen=True)
class Prefix:
    """The pieces that each translation begins with."""

    pieces: Int[Tensor, "S longest"]

    @classmethod
    def of(cls, prefixes: Sequence[Phrase], device: torch.device) -> "Prefix":
        """One prefix a sentence, empty ones too."""
        return cls(phrase_table([[prefix] for prefix in prefixes], device)[:, 0])

    def force(
        self,
        scores: Float[Tensor, "B R V"],
        base: Float[Tensor, "B R V"],
        ids: Int[Tensor, "B R L"],
        sentence: Int[Tensor, " B"],
    ) -> None:
        """Let nothing but the piece of the prefix compete, with its score in ``base``."""
        step = ids.shape[-1]
        if step >= self.pieces.shape[1]:
            return
        piece = self.pieces[sentence, step]
        rows = (piece != NONE).nonzero().flatten()
        forced = piece[rows].view(-1, 1, 1).expand(-1, scores.shape[1], 1)
        alone = torch.full_like(base[rows], -torch.inf)
        scores[rows] = alone.scatter(-1, forced, base[rows].gather(-1, forced))


@dataclass(frozen=True)
class Forbidden:
    """Phrases that no translation may hold: the last piece is barred once the rest stands."""

    by_length: tuple[Int[Tensor, "_ _ _"], ...]
    """Of each length that there is, the phrases."""

    @classmethod
    def of(cls, phrases: Sequence[Sequence[Phrase]], device: torch.device) -> "Forbidden":
        """The phrases of each sentence."""
        lengths = sorted({len(phrase) for group in phrases for phrase in group})
        tables = [
            phrase_table([[p for p in group if len(p) == length] for group in phrases], device)
            for length in lengths
        ]
        return cls(tuple(tables))

    def adjust(
        self,
        scores: Float[Tensor, "B R V"],
        ids: Int[Tensor, "B R L"],
        sentence: Int[Tensor, " B"],
    ) -> None:
        """Bar every piece that would complete a phrase."""
        said = ids.shape[-1]
        for table in self.by_length:
            length = table.shape[-1]
            if said < length - 1:
                continue
            phrases = table[sentence].unsqueeze(1)
            end = ids[..., said - length + 1 :].unsqueeze(-2)
            complete = (phrases[..., :-1] == end).all(dim=-1) & (phrases[..., -1] != NONE)
            last = phrases[..., -1].expand(complete.shape)
            # PAD, which is barred anyway, stands for nothing.
            scores.scatter_(-1, last.masked_fill(~complete, PAD), -torch.inf)
