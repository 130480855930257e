"""Required phrases: how far each hypothesis is from holding them all.

Post and Vilar (2018), "Fast Lexically Constrained Decoding with Dynamic Beam Allocation". Progress
is followed by an automaton (Aho and Corasick, 1975), so that phrases may overlap or hold each
other, and the fewest pieces that are still needed are known exactly: whatever would leave too
little room for them is barred. Shapes as in ``decoding.competition``, and S sentences of the batch,
P phrases, N states, A letters: the pieces that occur in a sentence's phrases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

from kakehashi.decoding.phrases import NONE, phrase_table
from kakehashi.decoding.rules import Phrase, Rules
from kakehashi.symbols import EOS, PAD

_FAR = 10**6
"""More pieces than any translation has."""


@dataclass(frozen=True)
class _Automaton:
    """Of one sentence. State 0: none of a phrase stands at the end of what was said."""

    letters: list[int]
    follow: npt.NDArray[np.int64]
    """[N, A]: the state after a letter."""
    completes: npt.NDArray[np.int64]
    """[N]: bits of the phrases that end where the state is entered."""
    need: npt.NDArray[np.int64]
    """[2 ** P, N]: the fewest pieces until all phrases are held, given the bits of those that
    are."""

    def after(self, pieces: Phrase) -> tuple[int, int]:
        """Bits and state after these pieces."""
        held = state = 0
        for piece in pieces:
            known = piece in self.letters
            state = int(self.follow[state, self.letters.index(piece)]) if known else 0
            held |= int(self.completes[state])
        return held, state


@lru_cache(256)
def _automaton(phrases: tuple[Phrase, ...]) -> _Automaton:
    """Made once for phrases that are required of many lines."""
    letters = sorted({piece for phrase in phrases for piece in phrase}) or [PAD]
    begun = {phrase[: end + 1] for phrase in phrases for end in range(len(phrase))}
    states = [(), *sorted(begun, key=len)]
    number = {state: place for place, state in enumerate(states)}
    follow = np.zeros((len(states), len(letters)), np.int64)
    completes = np.zeros(len(states), np.int64)
    for state, place in number.items():
        for bit, phrase in enumerate(phrases):
            if state[-len(phrase) :] == phrase:
                completes[place] |= 1 << bit
        for column, letter in enumerate(letters):
            said = (*state, letter)
            while said not in number:
                said = said[1:]
            follow[place, column] = number[said]
    every = (1 << len(phrases)) - 1
    need = np.full((every + 1, len(states)), _FAR, np.int64)
    need[every] = 0
    for held in range(every - 1, -1, -1):
        after = held | completes[follow]
        while True:  # at most once for each piece of the longest phrase
            nearer = 1 + need[after, follow].min(axis=1)
            if (nearer == need[held]).all():
                break
            need[held] = nearer
    return _Automaton(letters, follow, completes, need)


def _that_fit(rules: Rules, limit: int) -> tuple[Phrase, ...]:
    """The phrases for which the limit has room after the prefix, in the order given."""

    def fit(phrases: tuple[Phrase, ...]) -> bool:
        automaton = _automaton(phrases)
        held, state = automaton.after(rules.prefix)
        return bool(len(rules.prefix) + automaton.need[held, state] + 1 <= limit)

    if fit(rules.required):
        return rules.required
    kept: tuple[Phrase, ...] = ()
    for phrase in rules.required:
        if fit((*kept, phrase)):
            kept = (*kept, phrase)
    return kept


@dataclass(frozen=True)
class Required:
    """The required phrases of S sentences, as tables."""

    limit: Int[Tensor, " S"]
    phrases: Int[Tensor, "S P longest"]
    letters: Int[Tensor, "S A"]
    """Filled up with PAD."""
    follow: Int[Tensor, "S N A"]
    completes: Int[Tensor, "S N"]
    need: Int[Tensor, "S held N"]
    eager: bool
    """Whether a phrase that is begun is said to its end, and one is begun where EOS is the most
    probable piece. A search that follows one hypothesis alone would else wait, saying anything,
    until there is just enough room."""

    @classmethod
    def of(cls, rules: Sequence[Rules], limits: Int[Tensor, " S"], eager: bool) -> "Required":
        """Of each sentence the phrases that fit into its limit."""
        fitting = [_that_fit(r, limit) for r, limit in zip(rules, limits.tolist(), strict=True)]
        automata = [_automaton(phrases) for phrases in fitting]
        states = max(len(a.completes) for a in automata)
        width = max(len(a.letters) for a in automata)
        held = max(len(a.need) for a in automata)
        letters = np.full((len(rules), width), PAD, np.int64)
        follow = np.zeros((len(rules), states, width), np.int64)
        completes = np.zeros((len(rules), states), np.int64)
        need = np.zeros((len(rules), held, states), np.int64)
        for row, a in enumerate(automata):
            letters[row, : len(a.letters)] = a.letters
            follow[row, : a.follow.shape[0], : a.follow.shape[1]] = a.follow
            completes[row, : len(a.completes)] = a.completes
            need[row, : a.need.shape[0], : a.need.shape[1]] = a.need
        device = limits.device
        return cls(
            limits,
            phrase_table(fitting, device),
            torch.from_numpy(letters).to(device),
            torch.from_numpy(follow).to(device),
            torch.from_numpy(completes).to(device),
            torch.from_numpy(need).to(device),
            eager,
        )

    def needs(
        self, ids: Int[Tensor, "B R L"], sentence: Int[Tensor, " B"]
    ) -> tuple[Int[Tensor, "B R"], Int[Tensor, "B R"], Int[Tensor, "B R A"]]:
        """The fewest pieces needed now, after a piece of no phrase, and after each letter."""
        row = sentence.unsqueeze(1)
        held, state = self._held(ids, sentence), self._state(ids, sentence)
        after = self.follow[row, state]
        row_of_letter = row.unsqueeze(2)
        held_after = held.unsqueeze(2) | self.completes[row_of_letter, after]
        return (
            self.need[row, held, state],
            self.need[row, held, 0],
            self.need[row_of_letter, held_after, after],
        )

    def _state(self, ids: Tensor, sentence: Tensor) -> Tensor:
        """The longest beginning of a phrase at the end of each hypothesis, found from its end."""
        row = sentence.unsqueeze(1)
        letters = self.letters[sentence].unsqueeze(1)
        state = torch.zeros_like(ids[..., 0]) if ids.shape[-1] else ids.new_zeros(ids.shape[:2])
        for place in range(max(0, ids.shape[-1] - self.phrases.shape[-1]), ids.shape[-1]):
            same = letters == ids[..., place : place + 1]
            following = self.follow[row, state, same.int().argmax(dim=-1)]
            state = torch.where(same.any(dim=-1), following, 0)
        return state

    def _held(self, ids: Tensor, sentence: Tensor) -> Tensor:
        """Bits of the phrases that each hypothesis holds."""
        held = ids.new_zeros(ids.shape[:2])
        phrases = self.phrases[sentence]
        lengths = (phrases != NONE).sum(dim=-1)
        bits = 1 << torch.arange(phrases.shape[1], device=ids.device)
        for length in range(1, min(phrases.shape[-1], ids.shape[-1]) + 1):
            runs = ids.unfold(-1, length, 1).unsqueeze(2)
            same = (runs == phrases[:, None, :, None, :length]).all(dim=-1).any(dim=-1)
            held += ((same & (lengths == length).unsqueeze(1)) * bits).sum(dim=-1)
        return held

    def adjust(
        self,
        scores: Float[Tensor, "B R V"],
        ids: Int[Tensor, "B R L"],
        sentence: Int[Tensor, " B"],
    ) -> None:
        """Bar EOS while a phrase is missing, and all that would leave no room for one."""
        now, outside, inside = self.needs(ids, sentence)
        left = (self.limit[sentence] - ids.shape[-1] - 1).unsqueeze(1)
        letters = self.letters[sentence].unsqueeze(1).expand_as(inside)
        kept = scores.gather(-1, letters)
        barred = (outside > 0) & (outside >= left)
        barred_inside = (inside > 0) & (inside >= left.unsqueeze(2))
        if self.eager:
            nearer = inside < now.unsqueeze(2)
            due = (outside > now) | ((now > 0) & (scores.argmax(dim=-1) == EOS))
            due &= (nearer & (kept > -torch.inf)).any(dim=2)
            barred |= due
            barred_inside |= due.unsqueeze(2) & ~nearer
        scores.masked_fill_(barred.unsqueeze(2), -torch.inf)
        scores.scatter_(-1, letters, kept.masked_fill(barred_inside, -torch.inf))
        scores[..., EOS].masked_fill_(now > 0, -torch.inf)
