import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from omegaconf import OmegaConf

from kakehashi.errors import ConfigError
from kakehashi.models.config import (
    ModelConfig,
    RNNConfig,
    ScoreConfig,
    TransformerConfig,
    model_config,
    model_settings,
)

CONFIGS: list[ModelConfig] = [
    TransformerConfig(),
    TransformerConfig(
        d_model=30,
        n_heads=3,
        norm="layer",
        norm_position="post",
        activation="swiglu",
        bias=True,
        tie_embeddings=False,
        dropout=0.3,
        score=ScoreConfig("additive"),
    ),
    RNNConfig(),
    RNNConfig(d_embedding=11, d_maxout=5, tie_embeddings=False, score=ScoreConfig("general")),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_settings_go_through_json_and_back(config: ModelConfig) -> None:
    settings = model_settings(config)
    assert model_config(json.loads(json.dumps(settings))) == config
    assert model_settings(model_config(settings)) == settings


@pytest.mark.parametrize("config", CONFIGS)
def test_reading_settings_leaves_them_alone(config: ModelConfig) -> None:
    settings = model_settings(config)
    model_config(settings)
    assert settings == asdict(config)


@pytest.mark.parametrize("kind", [TransformerConfig, RNNConfig])
def test_configs_are_schemas_for_omegaconf(kind: type[ModelConfig]) -> None:
    schema = OmegaConf.structured(kind)
    assert OmegaConf.to_object(schema) == kind()
    plain: Any = OmegaConf.to_container(schema)
    assert model_config(plain) == kind()


@pytest.mark.parametrize("kind", [TransformerConfig, RNNConfig])
def test_every_setting_must_be_there_and_no_other(kind: type[ModelConfig]) -> None:
    settings = model_settings(kind())
    for name in set(settings) - {"name"}:
        lacking = {key: value for key, value in settings.items() if key != name}
        with pytest.raises(ConfigError, match=f"lacks {name}$"):
            model_config(lacking)
    with pytest.raises(ConfigError, match=r"unknown setting of model \w+: d_modle"):
        model_config({**settings, "d_modle": 64})


@pytest.mark.parametrize("name", [None, "lstm", "Transformer", 3, ["rnn"]])
def test_an_unknown_model_is_refused_with_the_known_ones(name: object) -> None:
    with pytest.raises(ConfigError, match="there are transformer, rnn"):
        model_config({**model_settings(TransformerConfig()), "name": name})
    with pytest.raises(ConfigError, match="there are transformer, rnn"):
        model_config({})


@pytest.mark.parametrize(
    "score",
    ["dot", None, {}, {"nmae": "dot"}, {"name": "dot", "scale": 1}, {"name": 3}, {"name": None}],
)
def test_a_score_is_a_name_and_nothing_else(score: object) -> None:
    with pytest.raises(ConfigError, match=r"model\.score"):
        model_config({**model_settings(RNNConfig()), "score": score})


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("activation", "reul"),
        ("norm", "batch"),
        ("norm_position", "Pre"),
        ("encoder_layers", 0),
        ("decoder_layers", -1),
        ("d_model", "128"),
        ("d_model", 128.0),
        ("d_model", True),
        ("d_feedforward", None),
        ("n_heads", 0),
        ("bias", "false"),
        ("bias", 0),
        ("tie_embeddings", None),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("dropout", float("nan")),
        ("dropout", "0.1"),
        ("attention_dropout", 1.5),
        ("activation_dropout", True),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(setting: str, value: object) -> None:
    settings = {**model_settings(TransformerConfig()), setting: value}
    with pytest.raises(ConfigError, match=rf"model\.{setting} is {value!r}"):
        model_config(settings)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("d_hidden", 0), ("d_attention", 7.5), ("dropout", 1.0), ("d_maxout", None)],
)
def test_the_rnn_is_as_strict(setting: str, value: object) -> None:
    settings = {**model_settings(RNNConfig()), setting: value}
    with pytest.raises(ConfigError, match=rf"model\.{setting} is {value!r}"):
        model_config(settings)


def test_a_whole_number_may_stand_for_a_probability() -> None:
    config = model_config({**model_settings(RNNConfig()), "dropout": 0})
    assert config == RNNConfig(dropout=0.0)
    assert type(config.dropout) is float


def test_an_unknown_score_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"score\.name is 'cosine'; it can be dot, scaled_dot"):
        ScoreConfig("cosine")


def test_the_name_of_a_config_is_the_name_of_its_model() -> None:
    with pytest.raises(ConfigError, match=r"model\.name is 'rnn'; it can be transformer"):
        TransformerConfig(name="rnn")
    with pytest.raises(ConfigError, match=r"model\.name is 'transformer'; it can be rnn"):
        RNNConfig(name="transformer")


def test_settings_at_odds_with_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"d_model is 128.*n_heads \(3\)"):
        TransformerConfig(n_heads=3)
    with pytest.raises(ConfigError, match=r"d_maxout \(7\) equal to model\.d_embedding \(128\)"):
        RNNConfig(d_maxout=7)
    with pytest.raises(ConfigError, match=r"n_heads \(7\)"):
        replace(TransformerConfig(), n_heads=7)
