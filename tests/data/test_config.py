import pytest

from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.tokenizer_config import SamplingConfig, TokenizerConfig
from kakehashi.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "web"}, "tatoeba, files, mixture, hub"),
        ({"valid_size": -1}, "valid_size is -1"),
        ({"batch_tokens": 0}, "batch_tokens is 0"),
        ({"batch_tokens": "all"}, "batch_tokens is 'all'; it can be a number or auto"),
        ({"target_language": "de"}, "both 'de'"),
        ({"source_language": ""}, "say which languages"),
    ],
)
def test_settings_that_cannot_be(settings: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        DataConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "words"}, "unigram, bpe"),
        ({"normalization": "nfd"}, "identity, nfkc"),
        ({"character_coverage": 0.5}, "between 0.9 and 1.0"),
        ({"symbols": ["<b>", ""]}, "'' cannot be a symbol"),
        ({"symbols": ["New York"]}, "'New York' cannot be a symbol"),
        ({"symbols": ["a\u2581"]}, "cannot be a symbol"),
        ({"symbols": ["a\u200b"]}, "cannot be a symbol"),
        ({"symbols": ["\ufdd0"]}, "cannot be a symbol"),
        ({"symbols": ["</s>"]}, "'</s>' is a piece of every tokenizer"),
        ({"symbols": ["<0x4F>"]}, "'<0x4F>' is a piece of every tokenizer"),
        ({"symbols": ["%s", "{x}", "%s"]}, "'%s' is there twice"),
        ({"kind": "bpe", "sampling": SamplingConfig(alpha=0.2)}, "tokenizer.kind=unigram"),
        ({"sampling": SamplingConfig(dropout=0.1)}, "tokenizer.kind=bpe, and this is unigram"),
    ],
)
def test_tokenizers_that_cannot_be(settings: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        TokenizerConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dropout": 1.0}, "dropout is 1.0; it is a probability below 1"),
        ({"dropout": -0.1}, "dropout is -0.1"),
        ({"alpha": -0.5}, "alpha is -0.5"),
        ({"alpha": 0.5, "dropout": 0.1}, "set one of them"),
    ],
)
def test_sampling_that_cannot_be(settings: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SamplingConfig(**settings)


def test_what_samples_what() -> None:
    assert SamplingConfig().kind is None
    assert SamplingConfig(alpha=0.0).kind == "unigram"
    assert SamplingConfig(dropout=0.1).kind == "bpe"


def test_a_split_comes_from_one_place() -> None:
    assert not SplitConfig().given
    assert SplitConfig(path="a.tsv").given
    assert SplitConfig(source="a", target="b").given
    with pytest.raises(ConfigError, match="both `source` and `target`"):
        SplitConfig(source="a.de")
    with pytest.raises(ConfigError, match="or `path`"):
        SplitConfig(source="a.de", target="a.en", path="a.tsv")
