"""Every file in configs/ composes, is checked, and every experiment trains a batch."""

import json
import subprocess
import sys

import hydra
import pytest
import torch
from hydra.errors import ConfigCompositionException
from omegaconf import OmegaConf

import kakehashi
from kakehashi.commands import config as config_module
from kakehashi.commands.config import TrainConfig, config_dir, read_config, register_schemas
from kakehashi.commands.run import run
from kakehashi.data.config import FilterConfig, PartConfig
from kakehashi.errors import ConfigError
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig

GROUPS = [
    "callbacks",
    "data",
    "decoding",
    "experiment",
    "debug",
    "logger",
    "model",
    "objective",
    "optimizer",
    "schedule",
    "tokenizer",
    "trainer",
]
SCORES = ("dot", "scaled_dot", "general", "additive")
EXPERIMENTS = sorted(path.stem for path in (config_dir() / "experiment").glob("*.yaml"))
SMALL = {
    # same experiments, at a width at which one batch takes a second
    "rnnsearch": [
        "model.d_embedding=20",
        "model.d_hidden=24",
        "model.d_attention=12",
        "model.d_maxout=10",
    ],
    "wmt14_en_de": ["model.d_model=32", "model.d_feedforward=48"],
}


def compose(*words: str) -> TrainConfig:
    register_schemas()
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        return read_config(hydra.compose("train", overrides=["name=test", *words]))


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (config_dir() / group).glob("*.yaml"))


@pytest.mark.parametrize(("group", "option"), [(g, o) for g in GROUPS for o in options(g)])
def test_every_option_composes(group, option):
    languages = ["data.source_language=de", "data.target_language=en"]
    words = languages if option in ("files", "mixture", "hub") else []
    compose(f"{group}={option}", *words)


@pytest.mark.parametrize(
    "words", [["trainer=epochs", "trainer.max_minutes=null"], ["+trainer.epochs_cap=3"]]
)
def test_a_stream_s_length_is_no_number_of_epochs(words):
    streamed = ["data=wmt14", "data.streaming=true"]
    assert compose(*streamed).trainer.max_minutes is not None
    with pytest.raises(
        ConfigError, match=r"epochs.* give trainer\.max_updates or trainer\.max_min"
    ):
        compose(*streamed, *words)


def test_layers_are_shared_by_processes_and_a_recurrent_model_has_none():
    words = ["trainer=updates", "trainer.strategy=fsdp", "trainer.devices=2"]
    assert compose(*words).trainer.strategy == "fsdp"
    with pytest.raises(ConfigError, match=r"model=rnn has none: use trainer\.strategy=ddp"):
        compose(*words, "model=rnn")


def test_corpora_of_a_mixture_from_the_command_line():
    config = compose(
        "data=mixture",
        "data.source_language=de",
        "data.target_language=en",
        "+data.corpora.talks.path=talks.tsv",
        "+data.corpora.web.source=web-*.de",
        "+data.corpora.web.target=web-*.en",
        "+data.corpora.web.weight=0.25",
    )
    talks, web = config.data.corpora["talks"], config.data.corpora["web"]
    assert isinstance(web, PartConfig)
    assert (talks.path, talks.weight) == ("talks.tsv", 1.0)
    assert (web.source, web.target, web.weight) == ("web-*.de", "web-*.en", 0.25)
    languages = ["data.source_language=de", "data.target_language=en"]
    with pytest.raises(ConfigError, match=r"data\.corpora\.web has no setting 'wight'"):
        compose("data=mixture", *languages, "+data.corpora.web.wight=2")
    with pytest.raises(ConfigError, match="'two': not a number"):
        compose("data=mixture", *languages, "+data.corpora.web.weight=two")
    with pytest.raises(ConfigError, match="above 0"):
        compose("data=mixture", *languages, "+data.corpora.web.weight=-1")


def test_the_groups_are_those_of_the_design():
    # the loop over GROUPS reaches every file but filters, scores and Hydra's own
    folders = {path.name for path in config_dir().iterdir() if path.is_dir()}
    assert folders == {*GROUPS, "filters", "score", "hydra"}


def test_the_defaults():
    config = compose()
    model = config.model
    assert (config.data.source_language, config.data.target_language) == ("de", "en")
    assert config.data.name == "tatoeba-de-en"
    assert isinstance(model, TransformerConfig)
    assert config.trainer.max_minutes is not None
    assert config.trainer.max_minutes <= 10


def test_filters():
    assert compose("filters@data.filters=none") == compose()
    assert compose().data.filters == FilterConfig()
    filters = compose("filters@data.filters=web", "data.filters.max_ratio=4").data.filters
    assert (filters.max_ratio, filters.duplicates, filters.splits) == (4, "pair", ["train"])
    with pytest.raises(ConfigError, match="never filtered"):
        compose("data.filters.splits=[train,test]")


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("name", "expected"), [("transformer", "scaled_dot"), ("rnn", "additive")])
def test_any_score_in_either_model(name, expected, score):
    assert compose(f"model={name}").model.score.name == expected
    assert compose(f"model={name}", f"score@model.score={score}").model.score.name == score


def test_one_attention_experiment_changes_nothing_but_the_score():
    additive, plain = compose("experiment=additive_transformer"), compose()
    assert additive.model.score.name == "additive"
    additive.model.score.name = plain.model.score.name
    assert additive == plain
    dot, rnn = compose("experiment=dot_rnn"), compose("model=rnn")
    assert dot.model.score.name == "dot"
    dot.model.score.name = rnn.model.score.name
    assert dot == rnn


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("transformer", 1e6, 3e6),
        ("transformer_small", 5e6, 12e6),
        ("transformer_base", 55e6, 70e6),
        ("transformer_big", 190e6, 220e6),
        ("rnn", 1e6, 4e6),
        ("rnn_small", 4e6, 14e6),
        ("rnn_base", 60e6, 100e6),
        ("rnn_big", 150e6, 250e6),
    ],
)
def test_sizes(name, low, high):
    """With the vocabularies they are meant for; base and big near the papers' counts."""
    vocab = {"base": 37000, "big": 37000, "small": 10000}.get(name.split("_")[-1], 4000)
    if name.startswith("rnn_base"):
        vocab = 30000
    with torch.device("meta"):
        model = build_model(compose(f"model={name}").model, vocab)
    assert low < sum(p.numel() for p in model.parameters()) < high


@pytest.mark.parametrize("section", [*GROUPS[:2], "model", "optimizer", "schedule", "trainer"])
def test_a_typo_is_caught(section):
    with pytest.raises(ConfigCompositionException, match="learning_rat"):
        compose(f"{section}.learning_rat=1")
    with pytest.raises((ConfigCompositionException, ConfigError), match="learning_rat"):
        compose(f"+{section}.learning_rat=1")


@pytest.mark.parametrize(
    "word", ["model.d_model=wide", "trainer.accumulate=1.5", "optimizer.beta1=high", "seed=x"]
)
def test_a_wrong_type_is_caught(word):
    with pytest.raises(ConfigCompositionException):
        compose(word)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("optimizer.beta1=1.5", "optimizer.beta1"),
        ("trainer.max_epochs=3", "exactly one"),
        ("model.n_heads=3", "model.n_heads"),
        ("callbacks.averaging.kind=median", "callbacks.averaging.kind"),
        ("callbacks.validation_beam=0", "callbacks.validation_beam"),
        ("callbacks.patience=0", "callbacks.patience"),
        ("decoding.beam=0", "decoding.beam"),
    ],
)
def test_a_value_out_of_range_is_caught(word, message):
    with pytest.raises(ConfigError, match=message):
        compose(word)


def test_a_composed_file_reads_back_without_schemas():
    """As a further process of a distributed run gets it."""
    register_schemas()
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        composed = hydra.compose("train", overrides=["name=test", "model=rnn"])
    plain = OmegaConf.create(OmegaConf.to_yaml(composed, resolve=True))
    assert read_config(plain) == read_config(composed)
    plain["typo"] = 1
    with pytest.raises(ConfigError, match="typo"):
        read_config(plain)


def test_configs_are_looked_for_in_the_package_first(tmp_path, monkeypatch):
    package = tmp_path / "lib" / "kakehashi"
    package.mkdir(parents=True)
    monkeypatch.setattr(kakehashi, "__file__", str(package / "__init__.py"))
    with pytest.raises(ConfigError, match="configuration files are missing"):
        config_module.config_dir()
    for folder in (tmp_path / "configs", package / "configs"):
        folder.mkdir()
        (folder / "train.yaml").touch()
        assert config_module.config_dir() == folder


@pytest.mark.parametrize(
    "experiment",
    [
        name if name in ("dot_rnn", "iwslt17") else pytest.param(name, marks=pytest.mark.slow)
        for name in EXPERIMENTS
    ],
)
def test_every_experiment_trains_a_batch(experiment, small_corpus, tmp_path, capsys):
    """The whole path, from files to a summary, with the experiment's own settings but the text."""
    name = f"experiment={experiment}"
    data = compose(name).data
    words = [
        name,
        "debug=one_batch",
        "data=files",
        f"data.source_language={data.source_language}",
        f"data.target_language={data.target_language}",
        f"data.train.source='{small_corpus.source_path}'",
        f"data.train.target='{small_corpus.target_path}'",
        "data.valid_size=4",
        "data.test_size=7",
        f"data.root='{tmp_path}'",
        "tokenizer.vocab_size=420",
        "decoding.max_ratio=1.0",
        "decoding.max_extra=1",
        *SMALL.get(experiment, []),
    ]
    config = compose(*words)
    model = config.model
    folder = tmp_path / "runs" / "first"
    folder.mkdir(parents=True)
    run(config, folder, words)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["training"]["updates"] == 2
    assert summary["model"]["score"]["name"] == model.score.name
    assert summary["test"]["scores"]["bleu"]["signature"].startswith("nrefs:1")
    assert (folder / "heatmap.png").stat().st_size > 1000
    assert (folder.parent / "latest").resolve() == folder.resolve()
    assert capsys.readouterr().out == (folder / "summary.txt").read_text(encoding="utf-8")
    if isinstance(model, RNNConfig):
        assert summary["model"]["name"] == "rnn"


def test_no_experiment_is_a_copy():
    """Each says only in what it differs from the defaults."""
    for path in (config_dir() / "experiment").glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# @package _global_\n#"), path
        assert len(text.splitlines()) < 50, path


def test_of_other_libraries_only_warnings_are_heard():
    program = f"""
import logging, logging.config, yaml
with open({str(config_dir() / "hydra/hydra_logging/stderr.yaml")!r}) as file:
    logging.config.dictConfig(yaml.safe_load(file))
logging.getLogger("httpx").info("an address")
logging.getLogger("unearth.finder").warning("a warning")
logging.getLogger("hydra._internal").info("job 1 of 2")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stderr.splitlines() == ["a warning", "job 1 of 2"]
    assert done.stdout == ""
