"""The one entry to every search: which translations a model gives a batch of sentences."""

from collections.abc import Sequence
from typing import Any

from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.competition import competition
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.greedy import greedy_search
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.limits import max_lengths
from kakehashi.decoding.methods import BEAM, Beam, DiverseBeam, Method, Sampling, check_number
from kakehashi.decoding.rules import Rules
from kakehashi.decoding.sampling import sample
from kakehashi.models.interface import Encoded, TranslationModel


def search(
    model: TranslationModel[Any],
    encoded: Encoded,
    *,
    config: DecodingConfig,
    method: Method = BEAM,
    n_best: int = 1,
    rules: Sequence[Rules] | None = None,
    keys: Sequence[int] | None = None,
    allow_unknown: bool = False,
) -> list[list[Hypothesis]]:
    """Translations of each sentence, by the method and within the rules given.

    What is found for a sentence depends on the sentence, its rules and its key alone, never on its
    neighbours in the batch (scores within 1e-4, the room that floating point takes).

    Args:
        model: in evaluation mode, or dropout has its say.
        encoded: what ``model.encode`` made of the sentences.
        config: the settings; ``batch_size`` is the caller's business.
        method: a beam, a diverse beam, or sampling.
        n_best: hypotheses to return at most: the best of a beam, at most ``config.beam``; or so
            many samples.
        rules: for each sentence; None is no rules.
        keys: a number for each sentence, which with the seed decides its samples (see
            ``sentence_key``); sampling needs it.
        allow_unknown: whether the unknown piece may be said, to be replaced by what it attends to.

    Returns:
        For each sentence at least one hypothesis: best first, or samples in the order they were
        drawn. Those of a beam end in EOS, unless none did within the limit. A required phrase that
        does not fit into the limit is left out: ``Rules.missing`` tells.

    Raises:
        ConfigError: for an ``n_best`` below 1 or greater than the beam, a beam that the groups do
            not divide, or a required phrase with a piece that may not be said.
        ValueError: for sampling without keys.
    """
    limits = max_lengths(encoded.allowed, config)
    rivals = competition(
        config,
        rules,
        encoded.allowed.sum(dim=1),
        limits,
        allow_unknown=allow_unknown,
        needed=isinstance(method, Sampling)
        or (isinstance(method, DiverseBeam) and method.groups > 1),
        eager=isinstance(method, Sampling)
        or config.beam == (method.groups if isinstance(method, DiverseBeam) else 1),
    )
    length_penalty = config.length_penalty
    check_number(config.beam, method, n_best)
    if isinstance(method, Sampling):
        if keys is None:
            raise ValueError("sampling needs a key for each sentence")
        assert rivals is not None
        return sample(
            model,
            encoded,
            sampling=method,
            draws=n_best,
            keys=keys,
            max_lengths=limits,
            length_penalty=length_penalty,
            competition=rivals,
        )
    if config.beam == 1 and not config.coverage_penalty:
        return greedy_search(
            model,
            encoded,
            max_lengths=limits,
            length_penalty=length_penalty,
            competition=rivals,
            scored=not isinstance(method, Beam) or method.scored,
        )
    return beam_search(
        model,
        encoded,
        beam=config.beam,
        max_lengths=limits,
        length_penalty=length_penalty,
        patience=config.patience,
        n_best=n_best,
        coverage_penalty=config.coverage_penalty,
        competition=rivals,
        groups=method.groups if isinstance(method, DiverseBeam) else 1,
        strength=method.strength if isinstance(method, DiverseBeam) else 0.0,
    )
