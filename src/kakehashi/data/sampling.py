"""Subword sampling as it is set: which tokens stand for a training split."""

from kakehashi.data.batching import FlatCorpus
from kakehashi.data.bpe_dropout import BPEDropout
from kakehashi.data.sampled import SampledCorpus
from kakehashi.data.subwords import Resegmenter, Segmentation, Speller
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import SamplingConfig
from kakehashi.data.unigram_sampling import UnigramSampling
from kakehashi.errors import ConfigError


def sampled(
    tokens: FlatCorpus, tokenizer: Tokenizer, config: SamplingConfig, *, seed: int
) -> SampledCorpus:
    """The tokenised split with new pieces in each epoch, for a `config` that samples.

    Raises ConfigError like `resegmenter`.
    """
    return SampledCorpus(tokens, resegmenter(tokenizer, config), seed=seed)


def resegmenter(tokenizer: Tokenizer, config: SamplingConfig) -> Resegmenter:
    """What draws new pieces, for a `config` that samples.

    Raises ConfigError where the tokenizer is of the other kind.
    """
    kind = tokenizer.settings.kind
    if kind != config.kind:
        raise ConfigError(
            f"{config.setting} samples with a {config.kind} tokenizer, and this one is {kind}"
        )
    speller = Speller(tokenizer)
    segmentation: Segmentation
    if config.alpha is None:
        segmentation = BPEDropout(tokenizer, speller, config.dropout)
    else:
        segmentation = UnigramSampling(tokenizer, speller, config.alpha)
    return Resegmenter(speller, segmentation)
