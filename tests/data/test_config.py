import pytest

from kakehashi.data.config import DataConfig, SplitConfig, TokenizerConfig
from kakehashi.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "web"}, "tatoeba, files, hub"),
        ({"valid_size": -1}, "valid_size is -1"),
        ({"batch_tokens": 0}, "batch_tokens is 0"),
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
    ],
)
def test_tokenizers_that_cannot_be(settings: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        TokenizerConfig(**settings)


def test_a_split_comes_from_one_place() -> None:
    assert not SplitConfig().given
    assert SplitConfig(path="a.tsv").given
    assert SplitConfig(source="a", target="b").given
    with pytest.raises(ConfigError, match="both `source` and `target`"):
        SplitConfig(source="a.de")
    with pytest.raises(ConfigError, match="or `path`"):
        SplitConfig(source="a.de", target="a.en", path="a.tsv")
