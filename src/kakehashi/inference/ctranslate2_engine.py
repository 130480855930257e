"""The engine that runs exported Transformers with CTranslate2; nothing here needs torch.

CTranslate2 takes pieces, not their numbers, and one length limit for all sentences of a call. Its
beam is the torch engine's but for three things, seen to here: at the limit hypotheses that have not
ended rank among those that have; without a length penalty it is through as soon as it has the best,
whatever the rest of an n-best list may be; and a forced prefix has no part in what it ranks. Two
remain: where pieces are barred, EOS below a minimum length among them, the rest share out their
probability in its search (not in the scores that are given), so that it may find another text; and
right after a prefix only the most probable piece may be EOS.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor, fsum
from pathlib import Path
from typing import Any

import numpy as np

from kakehashi.decoding.config import DecodingConfig, enough
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.methods import BEAM, DiverseBeam, Method, Sampling
from kakehashi.decoding.rules import Phrase, Rules
from kakehashi.errors import ConfigError, DataError
from kakehashi.inference.alignment import shifted
from kakehashi.inference.engine import Followed, R, Row, T
from kakehashi.inference.packages import ctranslate2
from kakehashi.symbols import BOS, EOS, PAD

LEAST_ATTENDED = 1e-6
"""As in ``decoding.coverage``, which needs torch."""
NO_PENALTY = 1e-9
"""A length penalty that is none in float32, and not 0."""


@dataclass(frozen=True)
class _Found:
    """One of CTranslate2's hypotheses: pieces without EOS, and what it was ranked by."""

    ids: tuple[int, ...]
    score: float
    finished: bool

    @property
    def steps(self) -> int:
        """Pieces, EOS counted where there is one."""
        return len(self.ids) + self.finished


class CTranslate2Engine:
    """Searches with an exported model.

    Args:
        folder: what ``kakehashi export --to ctranslate2`` wrote.
        pieces: the vocabulary, in order.
        positions: pieces of the longest sequence that the model has positions for.
        silenced: whether the model itself never says padding, unknown or BOS.
        shift: of its ``AlignmentChoice``; the layer and the head are in the exported model.
        device: cpu, cuda or auto.
        threads: cores to use; None: as many as this process may, or as OMP_NUM_THREADS says.

    Raises:
        ConfigError: where CTranslate2 is not installed, or cannot load the model.
    """

    name = "ctranslate2"

    def __init__(
        self,
        folder: Path,
        pieces: Sequence[str],
        *,
        positions: int,
        silenced: bool,
        shift: int = 0,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        self._pieces = list(pieces)
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self._positions = positions
        self._silenced = silenced
        self._shift = shift
        try:
            self._translator = ctranslate2().Translator(
                str(folder), device=device, intra_threads=threads or cores()
            )
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"CTranslate2 cannot load {folder}: {error}") from error

    def each(self, work: Callable[[T], R], batches: Sequence[T]) -> Iterator[R]:
        """See ``Engine``: one after the other, each on all cores."""
        return map(work, batches)

    def search(
        self,
        rows: Sequence[Row],
        *,
        config: DecodingConfig,
        method: Method = BEAM,
        n_best: int = 1,
        rules: Sequence[Rules] | None = None,
        allow_unknown: bool = False,
    ) -> list[list[Hypothesis]]:
        """See ``Engine``; beam and greedy search, with forced prefixes and forbidden phrases.

        Raises:
            ConfigError: for a diverse beam, sampling, required phrases, and penalties together with
                what they do not go together with here.
            DataError: for a sentence, or a limit of its translation, beyond the model's positions.
        """
        given = [Rules()] * len(rows) if rules is None else list(rules)
        _refuse(method, given, config, self._silenced)
        limits = [
            max(most_pieces(len(row) + 1, config), len(rule.prefix) + 1)
            for row, rule in zip(rows, given, strict=True)
        ]
        self._check_lengths(max(*limits, *(len(row) + 1 for row in rows)))
        changed = not self._silenced or rules is not None
        changed = changed or config.min_ratio > 0 or config.no_repeat_ngram > 0
        # CTranslate2 leaves prefixes out of what it ranks, and changes it where pieces are barred:
        # all that its beam finds is ranked again.
        seen = enough(config.beam, config.patience) if changed else n_best
        found: list[list[_Found]] = [[] for _ in rows]
        for group, call in _calls(rows, given, config):
            call = replace(call, allow_unknown=allow_unknown)  # noqa: PLW2901
            limit = max(limits[i] for i in group)
            results = self._translate([rows[i] for i in group], call, limit, seen)
            for i, hypotheses in zip(group, results, strict=True):
                found[i] = hypotheses
                alone = replace(call, prefixes=[given[i].prefix])
                if any(not h.finished or h.steps > limits[i] for h in hypotheses):
                    # A lower limit than its neighbours': once more by itself.
                    found[i] = self._translate([rows[i]], alone, limits[i], seen)[0]
                if not all(h.finished for h in found[i]):
                    # It comes to its limit, where those that have ended may be crowded out. As it
                    # was not through before, more patience changes nothing but shows all it found.
                    patient = replace(config, patience=config.patience + 1)
                    alone = replace(alone, config=patient)
                    every = enough(config.beam, patient.patience)
                    found[i] = self._translate([rows[i]], alone, limits[i], every)[0]
        return self._ranked(rows, found, config, n_best, changed)

    def follow(
        self, rows: Sequence[Row], targets: Sequence[Row], *, attending: bool = False
    ) -> list[Followed]:
        """See ``Engine``; attention is that which was chosen when the model was exported."""
        read = self._follow(rows, targets, attending)
        return [
            replace(one, attention=shifted(one.attention, self._shift))
            if one.attention is not None
            else one
            for one in read
        ]

    def _follow(
        self, rows: Sequence[Row], targets: Sequence[Row], attending: bool
    ) -> list[Followed]:
        """``follow`` with the attention step by step, not yet shifted."""
        self._check_lengths(max(len(row) + 1 for row in [*rows, *targets]))
        source, target = self._source(rows), self._texts(targets)
        scored = self._translator.score_batch(source, target, max_input_length=0)
        looks = self._attention(rows, targets) if attending else [None] * len(rows)
        return [
            Followed(tuple(result.log_probs), look)
            for result, look in zip(scored, looks, strict=True)
        ]

    def _attention(self, rows: Sequence[Row], targets: Sequence[Row]) -> list[Any]:
        """Where the decoder looks while it is made to say each target."""
        source, target = self._source(rows), self._texts(targets)
        results = self._translator.translate_batch(
            source,
            target_prefix=target,
            beam_size=1,
            max_input_length=0,
            max_decoding_length=max(map(len, targets)) + 1,
            min_decoding_length=max(map(len, targets)) + 1,
            return_attention=True,
        )
        return [
            np.array(result.attention[0][: len(pieces) + 1], dtype=np.float32)
            for result, pieces in zip(results, targets, strict=True)
        ]

    def _translate(
        self, rows: Sequence[Row], call: "_Call", limit: int, n_best: int
    ) -> list[list[_Found]]:
        barred = list(call.forbidden)
        if not self._silenced:
            barred += [(PAD,), (BOS,)]
        results = self._translator.translate_batch(
            self._source(rows),
            target_prefix=self._texts(call.prefixes) if any(call.prefixes) else None,
            beam_size=call.config.beam,
            patience=call.config.patience,
            num_hypotheses=n_best,
            length_penalty=call.config.length_penalty or (NO_PENALTY if n_best > 1 else 0.0),
            # Greedy search ranks nothing, and with a coverage penalty CTranslate2 crashes in it.
            coverage_penalty=call.config.coverage_penalty if call.config.beam > 1 else 0.0,
            repetition_penalty=call.config.repetition_penalty,
            no_repeat_ngram_size=call.config.no_repeat_ngram,
            disable_unk=not (self._silenced or call.allow_unknown),
            suppress_sequences=self._texts(barred) or None,
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=max(call.least - 1, 0),
            return_scores=True,
            return_end_token=True,
        )
        return [
            [self._found(*pair) for pair in zip(result.hypotheses, result.scores, strict=True)]
            if row
            else [_Found((), 0.0, True)]  # nothing is decoded of nothing
            for row, result in zip(rows, results, strict=True)
        ]

    def _found(self, tokens: list[str], score: float) -> _Found:
        ids = tuple(map(self._numbers.__getitem__, tokens))
        finished = bool(ids) and ids[-1] == EOS
        return _Found(ids[:-1] if finished else ids, score, finished)

    def _ranked(
        self,
        rows: Sequence[Row],
        found: list[list[_Found]],
        config: DecodingConfig,
        n_best: int,
        changed: bool,
    ) -> list[list[Hypothesis]]:
        """The n best of each, those that have ended if any did, by the model's own sums.

        CTranslate2 forms its sums over the pieces that are not barred, and without those of a
        prefix; where they may be ``changed`` by that they are formed anew.
        """
        ended = [[h for h in hypotheses if h.finished] or hypotheses for hypotheses in found]
        repeating, covering = config.repetition_penalty != 1, config.coverage_penalty > 0
        flat = [(i, h) for i, hypotheses in enumerate(ended) for h in hypotheses]
        read: list[Followed] | list[None] = [None] * len(flat)
        if changed or repeating or covering or not all(rows):
            chosen = [rows[i] for i, _ in flat], [h.ids for _, h in flat]
            read = self._follow(*chosen, attending=covering)
        ranked: list[list[Hypothesis]] = [[] for _ in rows]
        for (i, h), followed in zip(flat, read, strict=True):
            length = h.steps**config.length_penalty
            total = h.score * length
            if followed is not None:
                total = fsum(followed.log_probabilities[: h.steps])
            # Only CTranslate2 knows what a repetition penalty makes of the sum.
            score = h.score if repeating else total / length
            if covering and not (repeating and config.beam > 1):  # with a beam it is in there
                score += _coverage(followed, h.steps, config.coverage_penalty)
            ranked[i].append(Hypothesis(h.ids, score, total, h.finished))
        return [sorted(best, key=lambda h: -h.score)[:n_best] for best in ranked]

    def _source(self, rows: Sequence[Row]) -> list[list[str]]:
        end = self._pieces[EOS]
        return [[*tokens, end] for tokens in self._texts(rows)]

    def _texts(self, rows: Sequence[Row]) -> list[list[str]]:
        name = self._pieces.__getitem__
        return [list(map(name, row)) for row in rows]

    def _check_lengths(self, length: int) -> None:
        if length > self._positions:
            raise DataError(
                f"a sentence, or the translation that it may have, is {length:,} pieces long, and "
                f"the exported model has positions for {self._positions:,}: use --engine torch, "
                "which has no longest sentence, or a lower limit"
            )


def most_pieces(source: int, config: DecodingConfig) -> int:
    """Most pieces of the translation of so many source pieces; EOS counted in both."""
    return floor(source * config.max_ratio) + config.max_extra


def _coverage(followed: Followed | None, steps: int, weight: float) -> float:
    """The coverage penalty of a translation, see ``decoding.coverage``."""
    assert followed is not None and followed.attention is not None
    attended = followed.attention[:steps].sum(axis=0, dtype=np.float64)
    return weight * float(np.log(attended.clip(LEAST_ATTENDED, 1)).sum())


def _refuse(method: Method, rules: Sequence[Rules], config: DecodingConfig, silenced: bool) -> None:
    """Name what CTranslate2 does not do as this project has it."""
    if isinstance(method, DiverseBeam):
        raise ConfigError("the ctranslate2 engine has no diverse beam: use --engine torch")
    if isinstance(method, Sampling):
        raise ConfigError(
            "the ctranslate2 engine cannot draw the same samples twice from a seed: use --engine "
            "torch for sampling and minimum Bayes risk"
        )
    if any(rule.required for rule in rules):
        raise ConfigError("the ctranslate2 engine knows no required phrases: use --engine torch")
    beside = {
        "a forced prefix": any(rule.prefix for rule in rules),
        "forbidden phrases": any(rule.forbidden for rule in rules),
        "a minimum length": config.min_ratio > 0,
        "no repeated n-grams": config.no_repeat_ngram > 0,
        "a model that may say reserved pieces": not silenced,
    }
    for what, given in beside.items():
        # CTranslate2 shares out the probability of barred pieces and leaves out that of prefixes,
        # and the sums with the penalty, unlike the model's own, cannot be formed anew.
        if given and config.repetition_penalty != 1:
            raise ConfigError(
                "the ctranslate2 engine has other scores with a repetition penalty together with "
                f"{what}: use --engine torch"
            )


@dataclass(frozen=True)
class _Call:
    """What sentences that are decoded together share, and the beginnings of their translations."""

    config: DecodingConfig
    least: int
    """Fewest pieces of a translation, EOS counted."""
    forbidden: tuple[Phrase, ...]
    prefixes: Sequence[Phrase]
    allow_unknown: bool = False


def _calls(
    rows: Sequence[Row], rules: Sequence[Rules], config: DecodingConfig
) -> Iterator[tuple[list[int], _Call]]:
    """The places of the sentences that can be decoded together, and how."""
    groups: dict[tuple[int, tuple[Phrase, ...], int], list[int]] = {}
    for place, (row, rule) in enumerate(zip(rows, rules, strict=True)):
        least = floor((len(row) + 1) * config.min_ratio)
        # In a batch CTranslate2 counts padding and neighbours into a sentence's coverage.
        alone = place if config.coverage_penalty and config.beam > 1 else 0
        groups.setdefault((least, tuple(rule.forbidden), alone), []).append(place)
    for (least, forbidden, _), group in groups.items():
        yield group, _Call(config, least, forbidden, [rules[i].prefix for i in group])


def cores() -> int:
    """The cores that this process may use, or as many of them as OMP_NUM_THREADS says."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdigit() and int(told) else (os.cpu_count() or 1)
