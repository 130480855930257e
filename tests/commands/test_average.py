"""`kakehashi average` on a small run that has finished."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from kakehashi.commands.kept import best_checkpoints, last_checkpoints
from kakehashi.errors import TrainingError
from kakehashi.evaluation.scores import corpus_scores
from kakehashi.inference.bundle import load_bundle
from kakehashi.inference.folder import training_sentences
from kakehashi.inference.options import Options
from kakehashi.inference.translator import Translator
from kakehashi.training.checkpoint import load_checkpoint, load_weights, write_checkpoint


def checkpoint(run: Path, update: int) -> Path:
    return run / "checkpoints" / f"update-{update}.ckpt"


def points(run: Path) -> dict[int, float]:
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return {point["update"]: point["bleu"] for point in summary["training"]["points"]}


def changed(path: Path, copy: Path, **facts: Any) -> Path:
    """A checkpoint that tells other facts of its run."""
    content = load_checkpoint(path)
    content["kakehashi"] |= facts
    write_checkpoint(content, copy)
    return copy


@pytest.fixture(scope="module")
def valid(finished_run: Path) -> tuple[list[str], list[str]]:
    from kakehashi.commands.config import read_config
    from kakehashi.commands.saved import saved_config
    from kakehashi.data.corpora import load_corpus

    pairs = load_corpus(read_config(saved_config(finished_run)).data).valid
    return list(pairs.source), list(pairs.target)


def scores_before_are_those_that_the_run_measured(finished_run: Path, done: Any) -> None:
    said = done.out.decode()
    bleu = points(finished_run)
    for update in (20, 30, 40):
        row = rf"^update {update} \(update-{update}\.ckpt\) +{bleu[update]:.2f} \("
        assert re.search(row, said, re.MULTILINE), said
    assert re.search(r"^mean of 3 +\d", said, re.MULTILINE)
    best = max((20, 30, 40), key=lambda update: bleu[update])
    assert f"the mean against update {best} (update-{best}.ckpt), the best of them: BLEU " in said
    assert "nrefs:1|bs:1000|seed:12345" in said
    assert "the mean is in" in done.err


def test_the_last_checkpoints_become_a_model(kakehashi, finished_run, valid, tmp_path):
    folder = tmp_path / "mean"
    done = kakehashi("average", finished_run, "--last", 3, "-o", folder)
    assert done.status == 0, done.err
    bundle, before = load_bundle(folder), load_bundle(finished_run)
    states = [load_weights(checkpoint(finished_run, update)) for update in (20, 30, 40)]
    for name, weight in bundle.model.state_dict().items():
        expected = sum(state[name].double() for state in states) / 3
        torch.testing.assert_close(weight.double(), expected, rtol=1e-7, atol=1e-9)
    assert bundle.model.output.weight is bundle.model.source_embedding.table.weight
    assert bundle.tokenizer.fingerprint == before.tokenizer.fingerprint
    for fact in ("source_language", "target_language", "max_length", "decoding", "model"):
        assert getattr(bundle.config, fact) == getattr(before.config, fact)
    hashes = [training_sentences(path).to_bytes() for path in (folder, finished_run)]
    assert hashes[0] == hashes[1]

    average = bundle.config.metadata["average"]
    assert [part["update"] for part in average["of"]] == [20, 30, 40]
    source, target = valid
    texts = [t.text for t in Translator.load(folder).translate(source, Options(beam=1))]
    expected = corpus_scores(texts, target, "en")
    assert average["scores"]["chrf"]["value"] == pytest.approx(expected.chrf.value)
    assert average["scores"]["bleu"]["signature"] == expected.bleu.signature
    card = (folder / "README.md").read_text(encoding="utf-8")
    for update in (20, 30, 40):
        assert f"`update-{update}.ckpt` (update {update})" in card
    assert "On 12 pairs of the run's validation text, beam 1" in card
    assert f"| {expected.chrf.value:.2f} (" in card
    scores_before_are_those_that_the_run_measured(finished_run, done)


def test_a_checkpoint_with_itself_is_itself(kakehashi, finished_run, tmp_path):
    path = checkpoint(finished_run, 30)
    done = kakehashi("average", path, path, path, "-o", tmp_path / "mean")
    assert done.status == 0, done.err
    state, expected = load_bundle(tmp_path / "mean").model.state_dict(), load_weights(path)
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], weight) for name, weight in expected.items())
    assert "BLEU +0.00 (p 1.0000), chrF +0.00 (p 1.0000)" in done.out.decode()
    assert done.out.decode().count("update-30.ckpt") == 2  # its score, and the comparison


def test_other_text_can_be_scored(kakehashi, finished_run, small_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("kakehashi.commands.averaged.load_corpus", None)  # it is not needed
    for name, lines in (("de", small_corpus.source[:7]), ("en", small_corpus.target[:7])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = ["--source", tmp_path / "de", "--reference", tmp_path / "en"]
    done = kakehashi("average", finished_run, "--best", 1, *files, "-o", tmp_path / "mean")
    assert done.status == 0, done.err
    assert "On 7 pairs of de, beam 1" in done.out.decode()


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"run": "another"}, "run is {run} in the first and another in the second"),
        ({"seed": 22}, "seed is 1 in the first and 22 in the second"),
        ({"tokenizer_sha256": "9" * 64}, "tokenizer_sha256 is 9999999999999999 in the first and"),
    ],
)
def test_what_does_not_belong_together_is_refused(kakehashi, finished_run, tmp_path, facts, said):
    path = checkpoint(finished_run, 40)
    other = changed(path, tmp_path / "other.ckpt", **facts)
    done = kakehashi("average", path, other, "-o", tmp_path / "mean")
    assert done.status == 1
    assert said.format(run=load_checkpoint(path)["kakehashi"]["run"]) in done.err
    assert "other.ckpt" in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["other.ckpt"]
    assert done.out == b""


def test_another_shape_is_refused_by_name(kakehashi, finished_run, tmp_path):
    content = load_checkpoint(checkpoint(finished_run, 40))
    name = "model.encoder.0.self_attention.output.weight"
    content["state_dict"][name] = torch.ones(32, 31)
    write_checkpoint(content, tmp_path / "other.ckpt")
    words = [checkpoint(finished_run, 40), tmp_path / "other.ckpt"]
    done = kakehashi("average", *words, "-o", tmp_path / "mean")
    assert done.status == 1
    said = "encoder.0.self_attention.output.weight has shape [32, 31] in the first and [32, 32] in"
    assert said in done.err


def test_more_than_there_are_is_refused(kakehashi, finished_run, tmp_path):
    done = kakehashi("average", finished_run, "--last", 4, "-o", tmp_path / "mean")
    assert done.status == 1
    assert "holds 3 checkpoints (of updates 20, 30, 40) and --last asks for 4" in done.err
    assert "callbacks.keep=4" in done.err


def test_nothing_is_overwritten(kakehashi, finished_run, tmp_path):
    (tmp_path / "mean").mkdir()
    (tmp_path / "mean" / "precious").write_text("text", encoding="utf-8")
    done = kakehashi("average", finished_run, "--last", 1, "-o", tmp_path / "mean")
    assert done.status == 1
    assert "exists already" in done.err
    assert [p.name for p in (tmp_path / "mean").iterdir()] == ["precious"]


def test_a_run_that_has_not_finished_has_no_mean_yet(kakehashi, finished_run, tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    shutil.copy(finished_run / "config.yaml", run)
    for paths in ([run, "--last", 1], [checkpoint(run, 3)]):
        if not isinstance(paths[-1], int):
            shutil.copy(checkpoint(finished_run, 40), paths[0])
        done = kakehashi("average", *paths, "-o", tmp_path / "mean")
        assert done.status == 1
        assert f"the run {run} has not finished" in done.err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["RUN"], 2, "--last NUMBER or --best NUMBER"),
        (["RUN", "--last", 1, "--best", 1], 2, "--last NUMBER or --best NUMBER"),
        (["RUN", "RUN", "--last", 1], 2, "--last NUMBER or --best NUMBER"),
        (["RUN", "--last", 0], 2, "greater than or equal to 1"),
        (["RUN", "--last", 1, "--source", "x.de"], 2, "go together"),
        (["missing", "--last", 1], 1, "missing does not exist"),
        (["lost.ckpt"], 1, "does not stand in the checkpoints/ of"),
    ],
)
def test_words_that_make_no_sense(
    kakehashi, finished_run, tmp_path, monkeypatch, words, status, said
):
    monkeypatch.chdir(tmp_path)
    Path("lost.ckpt").touch()
    words = [finished_run if word == "RUN" else word for word in words]
    done = kakehashi("average", *words, "-o", "mean")
    assert done.status == status
    assert said in re.sub(r"[\s│]+", " ", done.err)
    assert not Path("mean").exists()


def test_the_best_are_the_best(tmp_path):
    folder = tmp_path / "checkpoints"
    bleu = {10: 3.0, 20: 9.0, 30: 5.0, 40: 1.0, 50: 5.0, 100: 2.0}
    for name, update in [("best", 20), *((f"update-{u}", u) for u in (30, 40, 50, 100))]:
        content = {"global_step": update, "state_dict": {}, "kakehashi": {}}
        write_checkpoint(content, folder / f"{name}.ckpt")
    summary = {"training": {"points": [{"update": u, "bleu": b} for u, b in bleu.items()]}}
    with pytest.raises(TrainingError, match=r"holds 0 checkpoints and --last asks for 1"):
        last_checkpoints(tmp_path / "empty", 1)
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")

    def best(number: int) -> list[str]:
        return [path.stem for path in best_checkpoints(tmp_path, number)]

    assert best(1) == ["best"]
    assert best(2) == ["best", "update-50"]
    assert best(3) == ["best", "update-30", "update-50"]
    assert best(4) == ["best", "update-30", "update-50", "update-100"]
    assert [path.stem for path in last_checkpoints(tmp_path, 2)] == ["update-50", "update-100"]
    with pytest.raises(TrainingError, match=r"holds 5 checkpoints .* and --best asks for 6"):
        best(6)
    with pytest.raises(TrainingError, match=r"holds 4 checkpoints .* and --last asks for 5"):
        last_checkpoints(tmp_path, 5)


def test_a_best_that_is_among_the_newest_counts_once(finished_run):
    kept = best_checkpoints(finished_run, 3)
    updates = {load_checkpoint(path)["global_step"] for path in kept}
    assert len(updates) == 3
