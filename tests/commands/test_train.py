"""`kakehashi train` as it is typed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kakehashi.commands.config import TrainConfig
from kakehashi.commands.runs import command, point_latest, reproduce
from kakehashi.inference.bundle import load_bundle, training_sentences
from kakehashi.inference.translator import Translator
from kakehashi.training.config import TrainerConfig

ROOT = Path(__file__).resolve().parents[2]
QUICK = [
    "data=files",
    "data.source_language=de",
    "data.target_language=en",
    "data.valid_size=6",
    "data.test_size=11",
    "tokenizer.vocab_size=420",
    "model.d_model=16",
    "model.d_feedforward=24",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.n_heads=2",
    "decoding.max_ratio=1.0",
    "decoding.max_extra=1",
    "trainer.accelerator=cpu",
]


def kakehashi(folder: Path, *words: str, **options) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "kakehashi.commands.main", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=900,
        check=False,
        **options,
    )


def files(corpus) -> list[str]:
    return [
        f"data.train.source='{corpus.source_path}'",
        f"data.train.target='{corpus.target_path}'",
    ]


@pytest.fixture(scope="module")
def trained(small_corpus, tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """One run by the clock, in a folder whose name has a space."""
    folder = tmp_path_factory.mktemp("a folder")
    words = [*QUICK, *files(small_corpus), "trainer.max_minutes=0.05", "trainer.validate_every=0.5"]
    return folder, kakehashi(folder, "train", *words)


def run_folder(folder: Path) -> Path:
    return folder / "runs" / "files-de-en-transformer" / "latest"


def test_the_run_folder_holds_everything(trained):
    folder, done = trained
    assert done.returncode == 0, done.stderr
    run = run_folder(folder)
    names = {path.name for path in run.iterdir()}
    assert names == {
        ".hydra",
        "checkpoints",
        "config.yaml",
        "curves",
        "heatmap.png",
        "ledger.jsonl",
        "model",
        "summary.json",
        "summary.txt",
        "test_translations.txt",
    }
    assert {path.name for path in folder.iterdir()} == {"runs", "data"}
    assert run.is_symlink()
    assert not Path(os.readlink(run)).is_absolute()


def test_stdout_is_the_summary_and_nothing_else(trained):
    folder, done = trained
    text = (run_folder(folder) / "summary.txt").read_text(encoding="utf-8")
    assert done.stdout == text
    assert "BLEU" in text
    assert "nrefs:1|bs:1000|seed:12345" in text
    assert "95 % interval" in text
    assert text.count("  reference   ") == 10
    assert str(run_folder(folder).resolve()) in text
    assert "Of 132 pairs read: 115 to train on, 6 held out for valid, 11 held out for test" in text
    for word in ("translate", "evaluate", "heatmap"):
        # the program's path is in quotes where it holds a space
        assert re.search(f"kakehashi'? {word} runs/files-de-en-transformer/latest", text)


def test_the_summary_for_programs(trained):
    folder, _ = trained
    summary = json.loads((run_folder(folder) / "summary.json").read_text(encoding="utf-8"))
    scores = summary["test"]["scores"]
    assert scores["bleu"]["low"] <= scores["bleu"]["high"]
    assert summary["training"]["seconds"] > 0
    assert set(summary["seconds"]) == {"corpus and tokenizer", "training", "test"}
    assert summary["parameters"] > 0
    assert summary["corpus"]["pairs_read"] == {"train": 132}
    assert summary["corpus"]["ledger"] == []
    assert summary["training"]["chosen"] in ("best", "average")
    updates = summary["training"]["total_updates"]
    assert summary["reproduce"].endswith(f"trainer.max_minutes=null trainer.max_updates={updates}")


def test_the_recorded_command_repeats_the_run_bit_for_bit(trained):
    import shlex

    folder, _ = trained
    first = run_folder(folder).resolve()
    summary = json.loads((first / "summary.json").read_text(encoding="utf-8"))
    words = shlex.split(summary["reproduce"])
    assert words[0] == "kakehashi"
    done = kakehashi(folder, *words[1:])
    assert done.returncode == 0, done.stderr
    second = run_folder(folder).resolve()
    assert second != first
    for name in ("model/model.safetensors", "test_translations.txt"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_the_model_translates_as_it_did_in_the_run(trained):
    folder, _ = trained
    run = run_folder(folder)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    translator = Translator.load(run)
    sample = summary["samples"][3]
    assert translator.translate([sample["source"]])[0].text == sample["translation"]
    assert load_bundle(run / "model").config.metadata["test"]["scores"] is not None
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert summary["test"]["scores"]["bleu"]["signature"].replace("|", "\\|") in card


def test_the_model_knows_the_sentences_of_its_training_alone(trained, small_corpus):
    folder, _ = trained
    run = run_folder(folder)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    training = training_sentences(run)
    found = training.lines_in(small_corpus.source, "source")
    assert len(found) == 132 - 6 - 11
    assert set(found) == set(training.lines_in(small_corpus.target, "target"))
    tested = [sample["source"] for sample in summary["samples"]]
    assert training.lines_in(tested, "source") == []


def test_runs_are_compared(trained):
    folder, _ = trained
    run = str(run_folder(folder))
    done = kakehashi(folder, "compare", run, run)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["files-de-en-transformer"] * 2
    first_words = [line.split("  ")[0] for line in lines[1:] if line]
    assert first_words[:3] == ["test BLEU", "test chrF", "parameters"]
    assert "signature: nrefs:1" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model.d_modle=3"], "there is no setting model.d_modle; did you mean d_model?"),
        (["optmizer=sgd"], "there is no setting optmizer; did you mean optimizer?"),
        (["objective.zzz=3"], "there are label_smoothing"),
        (["optimizer=sgd"], "optimizer/sgd"),
        (["seed=one"], "'one' of type 'str'"),
        (["seed=["], "no viable alternative"),
        (["name=${nobody}"], "'nobody' not found"),
        (["trainer.max_epochs=2"], "exactly one of trainer.max_updates"),
        (["data.train.source=missing.de"], "missing.de"),
        (["data.valid_size=0"], "data.valid_size"),
        (["tokenizer.vocab_size=90000"], "tokenizer.vocab_size"),
        (["schedule=cosine", "schedule.warmup_updates=0"], "trainer.max_minutes"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(small_corpus, tmp_path, words, message):
    done = kakehashi(tmp_path, "train", *QUICK, *files(small_corpus), *words)
    assert done.returncode == 1
    assert "\nerror: " in "\n" + done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "HYDRA" not in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.glob("runs/*/*"))


def test_help_and_version_come_without_torch(tmp_path):
    code = (
        "import sys\nfrom kakehashi.commands.main import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "assert not {'torch', 'lightning', 'datasets', 'hydra'} & set(sys.modules)\n"
    )
    for words in (["--help"], ["--version"], ["translate", "--help"], ["compare", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True,
            encoding="utf-8",
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_hydra_gets_every_word_after_train(tmp_path):
    done = kakehashi(tmp_path, "train", "--cfg", "job", "model=rnn", "seed=7", "--resolve")
    assert done.returncode == 0, done.stderr
    assert "name: tatoeba-de-en-rnn" in done.stdout
    assert "seed: 7" in done.stdout
    help_ = kakehashi(tmp_path, "train", "--help")
    assert "transformer_small" in help_.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_sweep_makes_a_run_of_each(small_corpus, tmp_path):
    words = [*QUICK, *files(small_corpus), "debug=one_batch", "seed=1,2", "--multirun"]
    done = kakehashi(tmp_path, "train", *words)
    assert done.returncode == 0, done.stderr
    summaries = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in tmp_path.glob("runs/*/2*/summary.json")
    ]
    assert sorted(summary["seed"] for summary in summaries) == [1, 2]
    assert done.stdout.count("Next:") == 2


@pytest.mark.slow
def test_two_processes_share_a_run(small_corpus, tmp_path):
    words = [*QUICK, *files(small_corpus), "debug=one_batch"]
    words += ["trainer.devices=2", "trainer.strategy=ddp", "trainer.deterministic=false"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "train.py"), *words],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Next:") == 1
    assert len(list(tmp_path.glob("runs/*/2*"))) == 1


def test_latest_moves(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        point_latest(tmp_path / name)
        assert os.readlink(tmp_path / "latest") == name
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first", "latest", "second"]


@pytest.mark.parametrize(
    ("words", "trainer", "expected"),
    [
        (["seed=2"], TrainerConfig(max_minutes=3), "seed=2 trainer.max_minutes=null"),
        (["trainer.max_minutes=3"], TrainerConfig(max_minutes=3), "trainer.max_minutes=null"),
        (["trainer=epochs"], TrainerConfig(max_epochs=3), "trainer=epochs trainer.max_epochs=null"),
    ],
)
def test_the_command_that_repeats_a_run(words, trainer, expected):
    assert reproduce(words, trainer, 71) == f"kakehashi train {expected} trainer.max_updates=71"


def test_a_run_by_updates_is_repeated_by_its_own_words():
    words = ["data.name=two words", "trainer.max_updates=5"]
    assert reproduce(words, TrainerConfig(max_updates=5), 5) == command(words)
    assert command(words) == "kakehashi train 'data.name=two words' trainer.max_updates=5"


def test_the_schema_needs_a_length():
    assert TrainConfig().trainer.max_minutes is not None


def test_several_corpora_in_several_files(small_corpus, tmp_path):
    for side, language in ((small_corpus.source, "de"), (small_corpus.target, "en")):
        for k, part in enumerate((side[:40], side[40:90], side[90:])):
            text = "".join(line + "\n" for line in part)
            (tmp_path / f"part-{k}.{language}").write_text(text, encoding="utf-8")
    words = [word for word in QUICK if word != "data=files"]
    words += ["data=mixture", "name=mixed", "trainer=updates", "trainer.max_updates=2"]
    words += ["+data.corpora.much.source=part-[01].de", "+data.corpora.much.target=part-[01].en"]
    words += ["+data.corpora.little.source=part-2.de", "+data.corpora.little.target=part-2.en"]
    words += ["+data.corpora.much.weight=0.5", "+data.corpora.little.weight=2"]
    words = [f"{w.split('=')[0]}='{w.split('=', 1)[1]}'" if "[" in w else w for w in words]
    done = kakehashi(tmp_path, "train", *words)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "runs" / "mixed" / "latest"
    mixture = json.loads((run / "summary.json").read_text(encoding="utf-8"))["corpus"]["mixture"]
    assert [part["name"] for part in mixture] == ["much", "little"]
    assert mixture[0]["pairs_an_epoch"] == round(mixture[0]["pairs"] / 2)
    assert mixture[1]["pairs_an_epoch"] == 2 * mixture[1]["pairs"]
    assert sum(part["pairs"] for part in mixture) == 132 - 17
    assert sum(part["share"] for part in mixture) == pytest.approx(1, abs=1e-3)
    for text in (done.stdout, (run / "model" / "README.md").read_text(encoding="utf-8")):
        assert f"little: {mixture[1]['pairs_an_epoch']:,} of {mixture[1]['pairs']:,} pairs" in text
    assert "(an epoch: much " in done.stderr
