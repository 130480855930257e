"""From checkpoints of a run to one model folder: load, average, score, write."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from kakehashi.commands.average_card import averaged_card
from kakehashi.commands.compare import read_summary
from kakehashi.commands.config import TrainConfig, read_config
from kakehashi.commands.progress import progress
from kakehashi.commands.saved import saved_config
from kakehashi.commands.systems import TestSet
from kakehashi.commands.tables import columns
from kakehashi.data.corpora import load_corpus
from kakehashi.data.notes import note
from kakehashi.errors import TrainingError
from kakehashi.evaluation.metrics import Metric
from kakehashi.evaluation.scores import Score, evaluate
from kakehashi.evaluation.tokenizers import bleu_tokenizer
from kakehashi.inference.bundle import Bundle, load_bundle
from kakehashi.inference.card import public_name
from kakehashi.inference.device import choose_device
from kakehashi.inference.folder import training_sentences
from kakehashi.inference.options import Options
from kakehashi.inference.save import save_bundle
from kakehashi.inference.translator import Translator
from kakehashi.training.mean import Mean
from kakehashi.training.snapshot import Snapshot, open_snapshot


@dataclass(frozen=True)
class Text:
    """What the models are scored on."""

    name: str
    source: Sequence[str]
    reference: Sequence[str]


@dataclass(frozen=True)
class Scored:
    """One of the models: what it is called, what it says, how good that is."""

    name: str
    translations: list[str]
    scores: tuple[Score, ...]


def make_average(
    run: Path, paths: Sequence[Path], output: Path, text: tuple[Path, Path] | None, device: str
) -> str:
    """Write the mean of checkpoints as a model folder; returns the scores before and after.

    Args:
        run: the finished run that they are of.
        paths: the checkpoints; one that is named twice counts twice.
        output: the folder to make.
        text: files of sentences and their true translations; None: the run's validation text.
        device: as in `kakehashi translate`.

    Raises:
        KakehashiError: for whatever is missing, damaged or of another run; nothing is written.
    """
    config = read_config(saved_config(run))
    bundle = load_bundle(run / "model", choose_device(device))
    mean, checkpoints = Mean(), []
    for path in paths:
        snapshot = open_snapshot(path)
        _refuse_other_model(run, bundle, snapshot)
        mean.add(snapshot)
        checkpoints.append((path.name, snapshot.update))
    scorer = _Scorer(bundle, _text(run, config, text), config.callbacks.validation_beam)
    before = [scorer.score_checkpoint(path) for path in dict.fromkeys(paths)]
    after = scorer.score(f"mean of {len(paths)}", mean.weights())
    summary = read_summary(run)
    scores = [(one.name, one.scores) for one in [*before, after]]
    save_bundle(
        output,
        bundle.model,
        bundle.tokenizer,
        source_language=bundle.config.source_language,
        target_language=bundle.config.target_language,
        max_length=bundle.config.max_length,
        decoding=bundle.config.decoding,
        card=averaged_card(summary, checkpoints, scorer.said, scores),
        metadata=_metadata(bundle, run, checkpoints, scorer.said, after),
        training=training_sentences(run / "model"),
    )
    note(f"the mean is in {output}")
    return scorer.report(before, after)


def _text(run: Path, config: TrainConfig, files: tuple[Path, Path] | None) -> Text:
    if files is not None:
        test = TestSet.read(*files)
        return Text(public_name(str(files[0])), test.sources or [], test.references)
    return validation_text(run, config)


def validation_text(run: Path, config: TrainConfig) -> Text:
    """What a finished run was validated on, made again from its corpus.

    Raises:
        KakehashiError: where the corpus cannot be had, or has changed.
    """
    valid = load_corpus(config.data).valid
    measured = read_summary(run)["corpus"]["validation_pairs"]
    if len(valid) != measured:
        raise TrainingError(
            f"the validation text of {run} had {measured:,} pairs and has {len(valid):,} now: the "
            "corpus has changed; give --source and --reference instead"
        )
    return Text("the run's validation text", list(valid.source), list(valid.target))


def _refuse_other_model(run: Path, bundle: Bundle, snapshot: Snapshot) -> None:
    """Refuse a checkpoint that the run's tokenizer and settings do not belong to."""
    path, folder = snapshot.path, run / "model"
    theirs, ours = str(snapshot.facts.get("tokenizer_sha256")), bundle.config.tokenizer_sha256
    if theirs != ours:
        raise TrainingError(
            f"{path} was trained with another tokenizer than {folder} has: tokenizer_sha256 is "
            f"{theirs[:16]} in the first and {ours[:16]} in the second"
        )
    state = bundle.model.state_dict()
    shapes = {name: list(weight.shape) for name, weight in state.items()}
    found = {name: list(weight.shape) for name, weight in snapshot.weights.items()}
    for name in sorted(shapes.keys() | found.keys()):
        if shapes.get(name) != found.get(name):
            raise TrainingError(
                f"{path} does not fit {folder}: {name} has shape {found.get(name, 'none')} in the "
                f"first and {shapes.get(name, 'none')} in the second"
            )


class _Scorer:
    """Scores a model again and again on one text, with the search of the run's validations."""

    def __init__(self, bundle: Bundle, text: Text, beam: int) -> None:
        self.bundle, self.text, self.beam = bundle, text, beam
        tokenizer, notes = bleu_tokenizer(bundle.config.target_language)
        self.metrics = [Metric("bleu", tokenizer), Metric("chrf")]
        for remark in notes:
            note(f"warning: {remark}")
        self.said = f"{len(text.reference):,} pairs of {text.name}, beam {beam}"

    def score_checkpoint(self, path: Path) -> Scored:
        """Of the model in a checkpoint."""
        snapshot = open_snapshot(path)
        return self.score(f"update {snapshot.update:,} ({path.name})", snapshot.weights)

    def score(self, name: str, weights: Mapping[str, Tensor]) -> Scored:
        """Of the model with these weights, which it keeps."""
        self.bundle.model.load_state_dict(weights)
        translator = Translator.of(self.bundle)
        options = Options(beam=self.beam)
        lines = self.text.source
        translations = []
        with progress(f"scoring {name}", "lines", len(lines)) as report:
            for translation in translator.stream(lines, options):
                translations.append(translation.text)
                report.advance()
        evaluation = evaluate([translations], self.text.reference, self.metrics)
        return Scored(name, translations, evaluation.scores[0])

    def report(self, before: list[Scored], after: Scored) -> str:
        """All scores, and whether the mean is better than the best that went into it."""
        rows = [["", *(metric.name for metric in self.metrics)]]
        rows += [[one.name, *map(_cell, one.scores)] for one in [*before, after]]
        best = max(before, key=lambda one: one.scores[0].value)
        both = [after.translations, best.translations]
        differences = evaluate(both, self.text.reference, self.metrics).differences
        changes = [
            f"{metric.name} {change.value:+.2f} (p {change.p_value:.4f})"
            for metric, change in zip(self.metrics, differences, strict=True)
        ]
        signatures = [f"{score.name} {score.signature}" for score in after.scores]
        return "\n".join(
            [
                f"On {self.said}; in brackets 95 % intervals:",
                "",
                *columns(rows),
                "",
                f"the mean against {best.name}, the best of them: {', '.join(changes)}",
                *signatures,
            ]
        )


def _cell(score: Score) -> str:
    return f"{score.value:.2f} ({score.low:.2f} to {score.high:.2f})"


def _metadata(
    bundle: Bundle, run: Path, checkpoints: list[tuple[str, int]], said: str, after: Scored
) -> dict[str, Any]:
    kept = {key: bundle.config.metadata[key] for key in ("corpus", "licence")}
    bleu, chrf = map(asdict, after.scores)
    return kept | {
        "average": {
            "run": run.resolve().name,
            "of": [{"file": name, "update": update} for name, update in checkpoints],
            "scored_on": said,
            "scores": {"bleu": bleu, "chrf": chrf},
        }
    }
