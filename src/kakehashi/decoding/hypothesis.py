"""What a search returns."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One translation found by a search."""

    ids: tuple[int, ...]
    """Vocabulary entries without BOS and EOS."""
    score: float
    """What ranks: ``log_probability / length ** length_penalty``, EOS counted (as CTranslate2 has
    it), plus the coverage penalty; with a repetition penalty, its log probabilities."""
    log_probability: float
    """Sum of the model's own natural log probabilities of the pieces and of EOS, whatever rules and
    penalties had a say in the choice: what forced decoding gives the same pieces. It and the score
    are NaN where a search went without them (``Beam.scored``)."""
    finished: bool
    """Whether it ended by itself; False where the length limit cut it, then it has no EOS."""
