"""`kakehashi train` as it is typed."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kakehashi.commands.config import TrainConfig
from kakehashi.commands.latest import point_latest
from kakehashi.commands.repeat import command, reproduce
from kakehashi.commands.train import train
from kakehashi.errors import TrainingError
from kakehashi.inference.bundle import load_bundle
from kakehashi.inference.folder import training_sentences
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


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def kakehashi(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return launch(folder, [sys.executable, "-m", "kakehashi.commands.main", *words])


def launch(folder: Path, command: list[str], **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=900,
        check=False,
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
        "analysis.json",
        "attention.json",
        "checkpoints",
        "config.yaml",
        "curves",
        "heatmap.png",
        "ledger.jsonl",
        "model",
        "overrides.yaml",
        "report.html",
        "summary.json",
        "summary.txt",
        "test_reference.txt",
        "test_source.txt",
        "test_translations.txt",
    }
    assert {path.name for path in folder.iterdir()} == {"runs", "data"}
    assert run.is_symlink()
    assert not Path(os.readlink(run)).is_absolute()


def test_the_report_shows_the_curves_and_the_words_of_the_run(trained):
    folder, _ = trained
    report = (run_folder(folder) / "report.html").read_text(encoding="utf-8")
    for name in ("c-nll", "c-bleu", "c-loss", "c-rate", "c-speed", "c-norm"):
        assert f'<desc id="{name}-d">' in report
    assert "trainer.validate_every=0.5" in report
    assert str(folder.resolve()) not in report


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
    assert set(summary["seconds"]) == {"corpus and tokenizer", "training", "test", "report"}
    assert summary["parameters"] > 0
    assert summary["corpus"]["pairs_read"] == {"train": 132}
    assert summary["corpus"]["ledger"] == []
    assert summary["training"]["chosen"] in ("best", "average")
    updates = summary["training"]["total_updates"]
    assert summary["reproduce"].endswith(f"trainer.max_minutes=null trainer.max_updates={updates}")


@pytest.mark.slow
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
        pytest.param(
            ["optmizer=sgd"],
            "there is no setting optmizer; did you mean optimizer?",
            marks=pytest.mark.slow,
        ),
        pytest.param(["objective.zzz=3"], "there are label_smoothing", marks=pytest.mark.slow),
        pytest.param(["optimizer=sgd"], "optimizer/sgd", marks=pytest.mark.slow),
        (["seed=one"], "'one' of type 'str'"),
        pytest.param(["seed=["], "no viable alternative", marks=pytest.mark.slow),
        pytest.param(["name=${nobody}"], "'nobody' not found", marks=pytest.mark.slow),
        pytest.param(
            ["trainer.max_epochs=2"], "exactly one of trainer.max_updates", marks=pytest.mark.slow
        ),
        pytest.param(["data.train.source=missing.de"], "missing.de", marks=pytest.mark.slow),
        pytest.param(["data.valid_size=0"], "data.valid_size", marks=pytest.mark.slow),
        pytest.param(
            ["tokenizer.vocab_size=90000"], "tokenizer.vocab_size", marks=pytest.mark.slow
        ),
        pytest.param(
            ["schedule=cosine", "schedule.warmup_updates=0"],
            "trainer.max_minutes",
            marks=pytest.mark.slow,
        ),
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
        "for words in sys.argv[1:]:\n"
        "    try:\n        app(words.split())\n    except SystemExit:\n        pass\n"
        "    print('END')\n"
        "    assert not {'torch', 'lightning', 'datasets', 'hydra'} & set(sys.modules)\n"
    )
    helped = ["translate", "compare", "average", "runs", "explore", "probe", "probe heads"]
    words = ["--help", "--version", *(f"{name} --help" for name in helped)]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.split("END\n")
    assert (len(said), said.pop()) == (len(words) + 1, "")
    assert all(said)


def test_hydra_gets_every_word_after_train(tmp_path):
    done = kakehashi(tmp_path, "train", "--cfg", "job", "model=rnn", "seed=7", "--resolve")
    assert done.returncode == 0, done.stderr
    assert "name: tatoeba-de-en-rnn" in done.stdout
    assert "seed: 7" in done.stdout
    help_ = kakehashi(tmp_path, "train", "--help")
    assert "transformer_small" in help_.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("trained", [True, False])
def test_a_run_that_fails_says_so_in_its_folder(tmp_path, monkeypatch, capsys, trained):
    def run(config, folder, words, resume, begin):
        if trained:
            (folder / "checkpoints").mkdir()
            (folder / "checkpoints" / "best.ckpt").touch()
        raise TrainingError("the loss is nan")

    monkeypatch.setattr("kakehashi.commands.run.run", run)
    monkeypatch.setattr(sys, "argv", ["kakehashi"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        train(["name=unlucky"])
    assert end.value.code == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: the loss is nan"
    said = [path.read_text(encoding="utf-8") for path in tmp_path.glob("runs/*/*/failed.txt")]
    assert said == (["the loss is nan\n"] if trained else [])
    assert bool(list(tmp_path.glob("runs/*/*"))) == trained


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
def test_a_search_of_two_trials(small_corpus, tmp_path):
    rate = "optimizer.learning_rate=tag(log,interval(1e-4,1e-1))"
    words = [*QUICK, *files(small_corpus), rate, "trainer=updates", "trainer.max_updates=1"]
    words += ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=2", "hydra.sweeper.folder=sweep"]
    done = kakehashi(tmp_path, "train", "--multirun", *words, "callbacks=best")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "sweep" / "sweep.json").read_text(encoding="utf-8"))
    assert [trial["trial"] for trial in found["trials"]] == [0, 1]
    for trial in found["trials"]:
        path = tmp_path / trial["folder"] / "summary.json"
        summary = json.loads(path.read_text(encoding="utf-8"))
        assert trial["validation_bleu"] == summary["training"]["validated"]["bleu"]
        assert trial["test_bleu"] == summary["test"]["scores"]["bleu"]["value"]
        found_rate = trial["settings"]["optimizer.learning_rate"]
        assert f"optimizer.learning_rate={found_rate}" in summary["command"]


@pytest.mark.slow
def test_a_run_that_fails_keeps_no_other_from_running(small_corpus, tmp_path):
    words = [*QUICK, *files(small_corpus), "tokenizer.vocab_size=90000,420", "callbacks=best"]
    words += ["trainer=updates", "trainer.max_updates=1"]
    done = kakehashi(tmp_path, "train", "--multirun", *words)
    assert done.returncode == 1
    assert "error: tokenizer.vocab_size=90000 is more than" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(list(tmp_path.glob("runs/*/*/summary.json"))) == 2  # one of them by way of `latest`
    assert done.stdout.count("Next:") == 1


@pytest.mark.slow
def test_runs_of_several_processes_are_not_swept(tmp_path):
    done = kakehashi(tmp_path, "train", "--multirun", "seed=1,2", "trainer.devices=2")
    assert done.returncode == 1
    assert "the runs of --multirun are of one process each" in done.stderr
    assert not list(tmp_path.glob("runs/*/*"))


TWO = ["trainer.devices=2", "trainer.strategy=ddp", "trainer.deterministic=false"]
LAUNCHED = {
    "by Lightning": [sys.executable, "-m", "kakehashi.commands.main", "train"],
    "script by Lightning": [sys.executable, str(ROOT / "scripts" / "train.py")],
    "torchrun": [*TORCHRUN, "-m", "kakehashi.commands.main", "train"],
    "script by torchrun": [*TORCHRUN, str(ROOT / "scripts" / "train.py")],
}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHED)
def test_two_processes_share_a_run(small_corpus, tmp_path, launcher):
    words = [*QUICK, *files(small_corpus), "debug=one_batch", *TWO]
    done = launch(tmp_path, [*LAUNCHED[launcher], *words])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Next:") == 1
    assert done.stderr.count("translating 11 test sentences") == 1
    (folder,) = tmp_path.glob("runs/*/2*")
    assert (folder / "overrides.yaml").exists()


@pytest.mark.slow
def test_two_processes_of_srun_share_a_run(small_corpus, tmp_path):
    slurm = {
        "SLURM_JOB_NAME": "train",
        "SLURM_JOB_ID": str(20000 + os.getpid()),
        "SLURM_NTASKS": "2",
        "SLURM_NTASKS_PER_NODE": "2",
        "SLURM_NNODES": "1",
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": "127.0.0.1",
    }
    words = [*QUICK, *files(small_corpus), "debug=one_batch", *TWO]
    script = [sys.executable, str(ROOT / "scripts" / "train.py"), *words]
    tasks = [slurm | {"SLURM_PROCID": str(k), "SLURM_LOCALID": str(k)} for k in (0, 1)]
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda task: launch(tmp_path, script, **task), tasks)
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert (first.stdout.count("Next:"), second.stdout) == (1, "")
    assert len(list(tmp_path.glob("runs/*/2*"))) == 1


@pytest.mark.slow
def test_two_processes_follow_one_with_their_budgets_together(small_corpus, tmp_path):
    words = [*QUICK, *files(small_corpus), "trainer=updates", "trainer.max_updates=8"]
    words += ["trainer.validate_every=1", "trainer.accumulate=3", "model.dropout=0", "seed=3"]
    words += ["callbacks=best", "trainer.deterministic=false"]
    script = str(ROOT / "scripts" / "train.py")
    curves = []
    for started, budget, more in (
        ([sys.executable, script], 400, ["runs=one"]),
        ([*TORCHRUN, script], 200, ["runs=two", *TWO]),
    ):
        done = launch(tmp_path, [*started, *words, f"data.batch_tokens={budget}", *more])
        assert done.returncode == 0, done.stderr
        (path,) = tmp_path.glob(f"{more[0].removeprefix('runs=')}/*/2*/summary.json")
        training = json.loads(path.read_text(encoding="utf-8"))["training"]
        curves.append([(point["nll"], point["bleu"]) for point in training["points"]])
        assert training["epochs"] > 1.5
    one, two = ([nll for nll, _ in curve] for curve in curves)
    assert len(one) == 8 and one[-1] < one[0] - 0.05
    assert two == pytest.approx(one, abs=3e-6)


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


@pytest.mark.slow
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
