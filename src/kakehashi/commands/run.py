"""From a configuration to a measured translator: everything that a training run does."""

import hashlib
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import lightning
import torch

from kakehashi.allocator import keep_freed_memory
from kakehashi.commands.card_facts import card_facts
from kakehashi.commands.config import TrainConfig
from kakehashi.commands.latest import point_latest
from kakehashi.commands.record import UNSCORED
from kakehashi.commands.reporting import analyse_test, write_page
from kakehashi.commands.summary import Sample, TestResult, summary_facts, write_summary
from kakehashi.commands.taught import given_links
from kakehashi.data.config import AUTO
from kakehashi.data.corpora import Corpus, load_corpus
from kakehashi.data.module import TranslationData
from kakehashi.data.normalisation import NormalisationEffect
from kakehashi.data.notes import note
from kakehashi.data.prepare import prepare_tokenizer, show_normalisation, show_symbols
from kakehashi.data.reading import write_lines
from kakehashi.data.seen import TrainingSentences
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import ConfigError
from kakehashi.evaluation.scores import corpus_scores
from kakehashi.inference.card import model_card
from kakehashi.inference.save import save_bundle
from kakehashi.inference.translator import Translator
from kakehashi.models.build import build_model
from kakehashi.models.interface import TranslationModel
from kakehashi.processes import first_of_each_machine, is_first
from kakehashi.training.alignment_head import AlignmentHead, taught_choice
from kakehashi.training.budget import FILE as BUDGET_FILE
from kakehashi.training.budget import measured_budget
from kakehashi.training.fit import FitSettings, fit
from kakehashi.training.fitted import Fitted
from kakehashi.training.guidance import Guide
from kakehashi.training.lexicon import align_embeddings, learn_lexicon
from kakehashi.training.module import TranslationTask
from kakehashi.training.schedule import Schedule
from kakehashi.training.validation import Validator

SAMPLES = 10
"""Test sentences shown in the summary."""
FEWEST_UPDATES = 50
"""An epoch has at least about so many, however much fits into memory."""
READABLE = 12
"""Pieces of the sentence whose attention is drawn."""


@dataclass
class Run:
    """What a run is made of, as far as it has got."""

    config: TrainConfig
    folder: Path
    words: list[str]
    """What followed `kakehashi train`."""
    corpus: Corpus
    tokenizer: Tokenizer
    normalisation: NormalisationEffect
    data: TranslationData
    model: TranslationModel[Any]
    guide: Guide | None
    aligning: AlignmentHead | None
    resume: bool
    """Whether it goes on from a checkpoint in its folder."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of each phase."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    """Drawn once, kept in every checkpoint: whether two checkpoints are of one run."""

    @property
    def exact_words(self) -> list[str]:
        """What followed `kakehashi train`, a number in the place of what was measured."""
        if self.config.data.batch_tokens != AUTO:
            return self.words
        kept = [word for word in self.words if not word.startswith("data.batch_tokens=")]
        return [*kept, f"data.batch_tokens={self.data.batch_tokens}"]

    @cached_property
    def training_sentences(self) -> TrainingSentences | None:
        """What the model folder keeps of the training text; nothing where that is a stream."""
        if self.corpus.stream is not None:
            return None
        train = self.corpus.train
        return TrainingSentences.of(train.source, train.target)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase."""
        start = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - start


def run(
    config: TrainConfig,
    folder: Path,
    words: Sequence[str],
    resume: bool = False,
    begin: Callable[[], None] = lambda: None,
) -> float:
    """Load, train, choose, save, translate the test split, report on stdout.

    ``begin`` is called once it is known that training can start, or go on from a checkpoint.

    Returns:
        Validation BLEU of the chosen weights.

    Raises:
        KakehashiError: when something is missing or cannot work; the message says what to do.
    """
    with first_of_each_machine("prepared"):
        run = prepare(config, folder, list(words), resume)
    with run.phase("training"):
        fitted = train(run, begin)
    if not fitted.is_main:
        return fitted.validated.bleu
    max_length = _longest(run)
    with run.phase("test"):
        translator = _on_disk(run, max_length)
        test = _test(run, translator)
    with run.phase("report"):
        analysis = analyse_test(run, translator, test)
    facts = summary_facts(run, fitted, test, max_length)
    card = model_card(card_facts(facts, analysis))
    shutil.rmtree(run.folder / "model", ignore_errors=True)
    _save(run, run.folder / "model", max_length, card, fitted, test)
    write_page(run.folder, facts)
    shutil.rmtree(run.folder / UNSCORED)
    point_latest(folder)
    # last of all: what makes the run a finished one
    sys.stdout.write(write_summary(run, fitted, test, facts))
    return fitted.validated.bleu


def prepare(config: TrainConfig, folder: Path, words: list[str], resume: bool = False) -> Run:
    """Everything that comes before the first update."""
    data_config, start = config.data, time.monotonic()
    if config.trainer.threads is not None:
        torch.set_num_threads(config.trainer.threads)
    keep_freed_memory()
    corpus = load_corpus(data_config)
    if not len(corpus.valid):
        raise ConfigError(
            "the corpus has no validation pairs: set data.valid, or data.valid_size above 0"
        )
    tokenizer = prepare_tokenizer(config.tokenizer, corpus, data_config.root)
    normalisation = show_normalisation(tokenizer, corpus)
    show_symbols(tokenizer, corpus)
    data = TranslationData(
        corpus,
        tokenizer,
        root=data_config.root,
        max_length=data_config.max_length,
        batch_tokens=0 if data_config.batch_tokens == AUTO else int(data_config.batch_tokens),
        validation_batch_tokens=data_config.validation_batch_tokens,
        seed=config.seed,
        workers=data_config.workers,
        sampling=config.tokenizer.sampling,
        temperature=data_config.temperature,
        processes=config.trainer.devices * config.trainer.num_nodes,
        ledger=folder / "ledger.jsonl",
    )
    # only now: whether the corpus was cached must not change the first weights
    lightning.seed_everything(config.seed, workers=True, verbose=False)
    model = build_model(config.model, tokenizer.vocab_size)
    guide = _teach(model, data, config)
    aligning = _teach_to_align(model, data, config)
    if data_config.batch_tokens == AUTO:
        data.batch_tokens = _filling_memory(config, data, model, guide, aligning, folder)
    if is_first() and corpus.stream is None:  # a stream's entries are written as it passes
        corpus.ledger.write(folder / "ledger.jsonl")
    taught = guide, aligning
    run = Run(config, folder, words, corpus, tokenizer, normalisation, data, model, *taught, resume)
    run.seconds["corpus and tokenizer"] = time.monotonic() - start
    return run


def _teach(
    model: TranslationModel[Any], data: TranslationData, config: TrainConfig
) -> Guide | None:
    """What the training text says of a model before its first update (see ``StartConfig``)."""
    start, vocab_size = config.start, model.vocab_size
    if start.spoken_only and data.corpus.stream is not None:
        note(
            "start.spoken_only: which pieces a stream's targets hold is not known, none is silenced"
        )
    if start.spoken_only:
        model.output.restrict(torch.from_numpy(data.spoken_pieces()))
    if start.embeddings == "random" and start.guidance == 0:
        return None
    lexicon = learn_lexicon(data.train_tokens, vocab_size)
    if start.embeddings == "aligned":
        align_embeddings(model, lexicon, vocab_size, config.seed)
    if start.guidance == 0:
        return None
    return Guide(lexicon, vocab_size, start.guidance, start.guidance_updates)


def _teach_to_align(
    model: TranslationModel[Any], data: TranslationData, config: TrainConfig
) -> AlignmentHead | None:
    """The head that learns from given alignments, which is then the one to read them off."""
    objective = config.objective
    if objective.alignments is None:
        return None
    links = given_links(Path(objective.alignments), data.corpus, data.tokenizer)
    model.alignment = taught_choice(model)
    return AlignmentHead(links, model.alignment, objective.alignment_weight)


def _filling_memory(
    config: TrainConfig,
    data: TranslationData,
    model: TranslationModel[Any],
    guide: Guide | None,
    aligning: AlignmentHead | None,
    folder: Path,
) -> int:
    """The token budget that this machine's memory allows, in an epoch of not too few updates."""
    schedule, decode = Schedule(config.schedule, None), data.tokenizer.decode
    validator = Validator([], decode, data.corpus.target_language, config.decoding)
    task = TranslationTask(
        model,
        config.objective,
        config.optimizer,
        schedule,
        validator,
        {},
        guide=guide,
        aligning=aligning,
    )
    most = data.n_tokens() // (FEWEST_UPDATES * config.trainer.accumulate)
    file = folder / BUDGET_FILE
    tokens = measured_budget(task, data.longest_batch, config.trainer, most, file)
    note(f"data.batch_tokens=auto: {tokens:,} tokens a batch ({file})")
    return tokens


def train(run: Run, begin: Callable[[], None]) -> Fitted:
    """Fit the model; afterwards it holds the chosen weights."""
    config = run.config
    parameters = sum(p.numel() for p in run.model.parameters())
    pairs = f"{run.data.n_training_pairs:,} training pairs{_mixed(run)}"
    if run.corpus.stream is not None:
        pairs = "training pairs from a stream"
    note(
        f"{run.corpus.name}: {pairs}; "
        f"{run.config.model.name} with {parameters:,} parameters; results go to {run.folder}"
    )
    beam = config.callbacks.validation_beam
    decoding = replace(
        config.decoding,
        beam=beam,
        batch_size=4 * config.decoding.batch_size if beam == 1 else config.decoding.batch_size,
    )
    validator = Validator(
        run.corpus.valid.target, run.tokenizer.decode, run.corpus.target_language, decoding
    )
    settings = FitSettings(
        config.trainer,
        config.objective,
        config.optimizer,
        config.schedule,
        config.callbacks,
        config.logger,
        {
            "run": run.id,
            "seed": config.seed,
            "tokenizer_sha256": run.tokenizer.fingerprint,
            "text_sha256": run.corpus.train.digest(),
        }
        | _alignments_digest(config),
        run.guide,
        run.aligning,
        seed=config.seed,
        resume=run.resume,
        pair=run.data.pair,
        begin=begin,
    )
    fitted = fit(run.model, run.data, validator, settings, run.folder)
    run.data.settle()
    # the number of batches in an epoch of a stream is known to nobody but the loader
    return fitted if run.data.seen is None else replace(fitted, epochs=run.data.seen.epochs)


def _alignments_digest(config: TrainConfig) -> dict[str, str]:
    """A run goes on with the alignments that it began with."""
    if config.objective.alignments is None:
        return {}
    content = Path(config.objective.alignments).read_bytes()
    return {"alignments_sha256": hashlib.sha256(content).hexdigest()}


def _mixed(run: Run) -> str:
    """What an epoch of a mixture holds."""
    parts = [f"{p['name']} {p['share']:.1%}" for p in run.data.mixture()]
    return f" (an epoch: {', '.join(parts)})" if parts else ""


def _longest(run: Run) -> int:
    """Pieces of the longest training sentence, EOS included; of a stream's, what they can be."""
    if run.corpus.stream is not None:
        return run.config.data.max_length + 1
    tokens = run.data.train_tokens
    longest = max(int(tokens.source_lengths.max()), int(tokens.target_lengths.max()))
    return min(longest, run.config.data.max_length) + 1


def _save(
    run: Run,
    folder: Path,
    max_length: int,
    card: str,
    fitted: Fitted | None = None,
    test: TestResult | None = None,
) -> None:
    metadata: dict[str, Any] = {"corpus": run.corpus.name, "licence": run.corpus.licence}
    if fitted is not None:
        metadata["training"] = fitted.as_dict()
    if test is not None and test.scores is not None:
        metadata["test"] = test.as_dict()
    save_bundle(
        folder,
        run.model.float().cpu(),
        run.tokenizer,
        source_language=run.corpus.source_language,
        target_language=run.corpus.target_language,
        max_length=max_length,
        decoding=run.config.decoding,
        card=card,
        metadata=metadata,
        training=run.training_sentences,
    )


def _on_disk(run: Run, max_length: int) -> Translator:
    """The model as it stands on disk, where it stays should scoring fail."""
    # a run that was stopped while it was scored has left one
    shutil.rmtree(run.folder / UNSCORED, ignore_errors=True)
    _save(run, run.folder / UNSCORED, max_length, "")
    device = "cpu" if run.config.trainer.accelerator == "cpu" else "auto"
    return Translator.load(run.folder / UNSCORED, device)


def _test(run: Run, translator: Translator) -> TestResult:
    """Translate the test split, and score that."""
    pairs, decoding = run.corpus.test, run.config.decoding
    if not len(pairs):
        return TestResult(None, [], [], 0.0, decoding)
    note(f"translating {len(pairs):,} test sentences, beam {decoding.beam}")
    start = time.monotonic()
    texts = [translation.text for translation in translator.translate(pairs.source)]
    seconds = time.monotonic() - start
    write_lines(run.folder / "test_translations.txt", texts)
    scores = corpus_scores(texts, pairs.target, run.corpus.target_language)
    every = max(1, len(pairs) // SAMPLES)
    rows = list(zip(pairs.source, texts, pairs.target, strict=True))[::every][:SAMPLES]
    _heat_map(translator, pairs.source, run.folder / "heatmap.png")
    samples = [Sample(*row) for row in rows]
    return TestResult(scores, samples, texts, len(pairs) / seconds, decoding)


def _heat_map(translator: Translator, lines: Sequence[str], path: Path) -> None:
    """Draw how the model attends on the test sentence whose length is nearest to readable."""
    from kakehashi.insight.sentence import draw_attention

    lengths = [len(pieces) for pieces in translator.tokenizer.encode_batch(list(lines))]
    line = lines[min(range(len(lines)), key=lambda i: abs(lengths[i] - READABLE))]
    draw_attention(translator, line, path)
