"""Data whose training pairs are a stream, as a run and as Lightning take them."""

import pickle
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint

from kakehashi.data.corpora.base import Corpus, Ledger
from kakehashi.data.module import TranslationData
from kakehashi.data.pairs import Pairs
from kakehashi.data.stream import TrainingStream
from kakehashi.data.streaming import ENDLESS, _Made
from kakehashi.data.tokenizer import Tokenizer


def screen(pairs: Pairs, ledger: Ledger) -> tuple[Pairs, int]:
    """Of each block the first pair is held out, the last one left out."""
    ledger.add("train", *pairs.place(len(pairs) - 1), "both", "the last one")
    return pairs.select(range(1, len(pairs) - 1)), 1


@pytest.fixture
def corpus(small_corpus, shards_in_memory) -> Corpus:
    """Two shards of 50 pairs, read in blocks of 25; a sample of 30."""
    rows = list(zip(small_corpus.source, small_corpus.target, strict=True))
    stream = shards_in_memory([rows[:50], rows[50:100]])
    ledger = Ledger()
    ledger.add("valid", "valid", 3, "source", "blank side", "kept")

    def pairs(part: slice) -> Pairs:
        return Pairs(small_corpus.source[part], small_corpus.target[part], "small")

    splits = (pairs(slice(30)), pairs(slice(100, 110)), pairs(slice(110, 120)))
    training = TrainingStream(stream, screen, 25, 30)
    return Corpus("small", "de", "en", *splits, ledger=ledger, read={"train": 30}, stream=training)


@pytest.fixture(scope="module")
def tokenizer(small_corpus) -> Tokenizer:
    return Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=420)


def data_of(corpus: Corpus, tokenizer: Tokenizer, folder: Path, **settings) -> TranslationData:
    folder.mkdir(exist_ok=True)
    return TranslationData(
        corpus,
        tokenizer,
        root=folder.parent,
        batch_tokens=500,
        seed=3,
        ledger=folder / "ledger.jsonl",
        **settings,
    )


def test_the_sample_is_for_what_must_be_known_beforehand(corpus, tokenizer, tmp_path) -> None:
    data = data_of(corpus, tokenizer, tmp_path / "run", max_length=40)
    assert len(data.train_tokens) == 30
    assert data.spoken_pieces().tolist() == list(range(tokenizer.vocab_size))
    # what becomes of the sample's pairs is entered when the stream passes them
    assert [entry.split for entry in corpus.ledger] == ["valid"]
    facts = data.facts()
    assert facts["stream"] == {"shards": 2, "sample": 30, "seen": None}
    assert facts["source_pieces"] is None


def test_after_training_the_corpus_knows_what_was_read(corpus, tokenizer, tmp_path) -> None:
    data = data_of(corpus, tokenizer, tmp_path / "run")
    loader = data.train_dataloader()
    assert len(loader) == ENDLESS
    handed = 0
    for batch in loader:
        handed += len(batch.index)
        if handed > 92:  # the 100, less one of each block's ends: the second epoch
            break
    data.settle()
    assert data.seen is not None
    assert data.seen.pairs == handed
    assert data.seen.epochs == handed / 92
    assert data.n_training_pairs == 92
    assert corpus.read["train"] == 100
    assert corpus.ledger.left_out("train") == data.seen.counts.held_out == 4
    lines = (tmp_path / "run" / "ledger.jsonl").read_text().splitlines()
    assert len(lines) == sum(total.pairs for total in corpus.ledger.totals()) == 5


def test_a_worker_can_be_started_anew(corpus, tokenizer, tmp_path) -> None:
    """Where processes aren't forked, what makes blocks is sent to them."""
    loader = data_of(corpus, tokenizer, tmp_path / "run").train_dataloader()
    made = _Made(loader._share, loader._maker, loader._position.start)
    again = pickle.loads(pickle.dumps(made))  # noqa: S301, our own
    for one, other in zip(islice(made, 3), islice(again, 3), strict=True):
        assert np.array_equal(one.tokens.source_ids, other.tokens.source_ids)
        assert np.array_equal(one.order, other.order)


class _Recorder(LightningModule):
    """Learns nothing and remembers which pairs came."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def training_step(self, batch, _):
        self.seen.append(batch.index.tolist())
        return self.weight * 0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def _trainer(steps: int, **settings) -> Trainer:
    return Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing="callbacks" in settings,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        max_epochs=-1,
        max_steps=steps,
        **settings,
    )


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning", "ignore::UserWarning:lightning.*")
@pytest.mark.parametrize("workers", [0, 1])
def test_lightning_goes_on_exactly(corpus, tokenizer, tmp_path, workers: int) -> None:
    folder, n = tmp_path / "run", 17
    expected = [
        batch.index.tolist()
        for batch in islice(data_of(corpus, tokenizer, folder).train_dataloader(), n)
    ]
    whole = _Recorder()
    every = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=1, save_top_k=-1)
    loader = data_of(corpus, tokenizer, folder, workers=workers).train_dataloader()
    _trainer(n, callbacks=[every]).fit(whole, loader)
    assert whole.seen == expected
    for stop in (1, 6, 13):
        resumed = _Recorder()
        loader = data_of(corpus, tokenizer, folder, workers=workers).train_dataloader()
        path = tmp_path / f"step={stop}.ckpt"
        _trainer(n).fit(resumed, loader, ckpt_path=path, weights_only=True)
        assert resumed.seen == expected[stop:]
