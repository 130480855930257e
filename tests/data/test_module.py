from collections import Counter

import numpy as np
import pytest
import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint

from kakehashi.data.corpora.base import Corpus, Pairs, Part
from kakehashi.data.module import TranslationData
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import SamplingConfig
from kakehashi.errors import DataError
from kakehashi.symbols import EOS, PAD


@pytest.fixture(scope="module")
def tokenizer(small_corpus) -> Tokenizer:
    return Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)


@pytest.fixture
def corpus(small_corpus) -> Corpus:
    pairs = Pairs(small_corpus.source, small_corpus.target, "small.de, small.en")
    return Corpus(
        name="small",
        source_language="de",
        target_language="en",
        train=pairs.select(range(101)),
        valid=Pairs(["", *pairs.source[101:113]], ["leer", *pairs.target[101:113]]),
        test=pairs.select(range(113, 132)),
    )


def test_training_batches_hold_the_text(corpus, tokenizer, tmp_path) -> None:
    data = TranslationData(corpus, tokenizer, root=tmp_path, batch_tokens=157)
    seen = []
    for batch in data.train_dataloader():
        assert batch.source.shape[0] * (batch.source.shape[1] + batch.target.shape[1] - 1) <= 157
        for row, k in enumerate(batch.index.tolist()):
            assert tokenizer.decode(batch.source[row].tolist()) == corpus.train.source[k]
            assert tokenizer.decode(batch.target[row].tolist()) == corpus.train.target[k]
            seen.append(k)
    assert sorted(seen) == list(range(101))


def test_validation_drops_nothing_and_keeps_its_order(corpus, tokenizer, tmp_path) -> None:
    settings = {"root": tmp_path, "max_length": 13, "validation_batch_tokens": 89}
    orders = []
    for seed in (1, 2):
        data = TranslationData(corpus, tokenizer, seed=seed, **settings)
        orders.append([batch.index.tolist() for batch in data.val_dataloader()])
    assert orders[0] == orders[1]
    assert sorted(k for rows in orders[0] for k in rows) == list(range(13))
    assert data.valid_pairs is corpus.valid
    assert data.test_pairs is corpus.test


def test_long_training_pairs_are_left_out_and_listed(corpus, tokenizer, tmp_path, capsys) -> None:
    data = TranslationData(corpus, tokenizer, root=tmp_path, max_length=11, batch_tokens=157)
    source, target = (
        np.array([len(row) for row in tokenizer.encode_batch(side)]) > 11
        for side in (corpus.train.source, corpus.train.target)
    )
    left_out = {int(k) + 1 for k in np.flatnonzero(source | target)}
    assert 0 < len(left_out) < 101
    assert {entry.line for entry in corpus.ledger} == left_out
    for entry in corpus.ledger:
        long = source[entry.line - 1], target[entry.line - 1]
        assert entry.side == {(True, True): "both", (True, False): "source"}.get(long, "target")
    seen = {k + 1 for batch in data.train_dataloader() for k in batch.index.tolist()}
    assert seen == set(range(1, 102)) - left_out
    assert f"{len(left_out)} of 101 pairs have more than 11 pieces" in capsys.readouterr().err
    facts = data.facts()
    assert facts["training_pairs"] == data.n_training_pairs == 101 - len(left_out)
    (total,) = facts["ledger"]
    assert (total["reason"], total["pairs"]) == ("more than 11 pieces", len(left_out))
    assert total["action"] == "left out"


def test_only_training_batches_are_sampled(corpus, tokenizer, tmp_path) -> None:
    plain = TranslationData(corpus, tokenizer, root=tmp_path, batch_tokens=157)
    data = TranslationData(
        corpus, tokenizer, root=tmp_path, batch_tokens=157, sampling=SamplingConfig(alpha=0.2)
    )
    for a, b in zip(plain.val_dataloader(), data.val_dataloader(), strict=True):
        assert torch.equal(a.source, b.source)
        assert torch.equal(a.target, b.target)
    loader, epochs = data.train_dataloader(), []
    for _ in range(2):
        seen = {}
        for batch in loader:
            for row, k in enumerate(batch.index.tolist()):
                ids = [i for i in batch.source[row].tolist() if i not in (PAD, EOS)]
                assert tokenizer.decode(ids) == corpus.train.source[k]
                seen[k] = ids
        assert set(seen) == set(range(101))
        epochs.append(seen)
    assert epochs[0] != epochs[1]
    assert data.train_tokens.source_ids.tolist() == plain.train_tokens.source_ids.tolist()
    assert data.facts()["growth_by_sampling"][0] > 1 and not plain.facts()["growth_by_sampling"]


def test_spoken_pieces_are_all_that_training_can_ask_for(corpus, tmp_path) -> None:
    lines = [*corpus.train.source, *corpus.train.target]
    tokenizer = Tokenizer.train(lines, vocab_size=401, symbols=["{nobody}"])
    (symbol,) = tokenizer.symbol_numbers()
    plain = TranslationData(corpus, tokenizer, root=tmp_path).spoken_pieces()
    targets = {i for row in tokenizer.encode_batch(corpus.train.target) for i in row}
    assert plain.tolist() == sorted(targets | {EOS, symbol})
    data = TranslationData(corpus, tokenizer, root=tmp_path, sampling=SamplingConfig(alpha=0.0))
    spoken = set(data.spoken_pieces().tolist())
    assert set(plain.tolist()) < spoken
    loader, said = data.train_dataloader(), set()
    for _ in range(5):
        said |= {i for batch in loader for i in batch.target_output.flatten().tolist()}
    assert said - {PAD} <= spoken
    without = Tokenizer.train(lines, vocab_size=401)
    for sampling in (None, SamplingConfig(alpha=0.2)):
        data = TranslationData(corpus, without, root=tmp_path, sampling=sampling)
        assert data.spoken_pieces().dtype == np.int64
        assert EOS in data.spoken_pieces()
    # not everything: what only the source language writes stays silent
    assert len(spoken) < tokenizer.vocab_size - 200


def test_nothing_short_enough_is_an_error(corpus, tokenizer, tmp_path) -> None:
    with pytest.raises(DataError, match=r"raise data\.max_length"):
        TranslationData(corpus, tokenizer, root=tmp_path, max_length=1)


def test_two_processes_share_train_and_both_see_all_of_valid(corpus, tokenizer, tmp_path) -> None:
    seen, sizes = [], []
    for rank in (0, 1):
        data = TranslationData(corpus, tokenizer, root=tmp_path, batch_tokens=157, processes=2)
        data.trainer = _Share(rank)
        loader = data.train_dataloader()
        sizes.append(len(loader))
        seen += [k for batch in loader for k in batch.index.tolist()]
        assert sum(len(batch.index) for batch in data.val_dataloader()) == 13
    assert sizes[0] == sizes[1]
    assert sorted(k for k in seen if k >= 0) == list(range(101))


# More than this machine may have cores.
@pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker processes")
def test_a_mixture_is_the_same_for_workers_and_processes(corpus, tokenizer, tmp_path) -> None:
    corpus.parts = (Part("many", 0.3, 71), Part("few", 2.5, 101))
    # A long pair in either corpus takes no part, and counts in neither.
    settings = {"root": tmp_path, "seed": 4, "max_length": 26}

    def epochs(workers: int, rank: int = 0, world_size: int = 1) -> list[list[list[int]]]:
        shared = settings | {"batch_tokens": 314 // world_size, "processes": world_size}
        data = TranslationData(corpus, tokenizer, workers=workers, **shared)
        if world_size > 1:
            data.trainer = _Share(rank)
        loader = data.train_dataloader()
        read = []
        for epoch in (0, 1):
            loader.set_epoch(epoch)
            read.append([batch.index.tolist() for batch in loader])
            assert len(read[-1]) == len(loader)
        return read

    alone = epochs(0)
    assert alone == epochs(4)
    shares = [epochs(0, rank, 2) for rank in (0, 1)]
    data = TranslationData(corpus, tokenizer, **settings)
    kept = {k for k in range(101) if k + 1 not in {e.line for e in corpus.ledger}}
    assert 0 < len(kept) < 101
    sizes = [sum(k < 71 for k in kept), sum(k >= 71 for k in kept)]
    mixture = data.mixture()
    assert [part["pairs"] for part in mixture] == sizes
    expected = [round(0.3 * sizes[0]), 2 * sizes[1] + round(0.5 * sizes[1])]
    assert [part["pairs_an_epoch"] for part in mixture] == expected
    for epoch in (0, 1):
        counts = Counter(k for batch in alone[epoch] for k in batch)
        assert set(counts) <= kept
        assert [sum(counts[k] for k in kept if (k < 71) == many) for many in (1, 0)] == expected
        for batch, *parts in zip(alone[epoch], *(share[epoch] for share in shares), strict=True):
            assert sorted(batch) == sorted(k for part in parts for k in part if k >= 0)
    assert alone[0] != alone[1]


def test_temperature_and_corpora_of_which_nothing_is_left(corpus, tokenizer, tmp_path) -> None:
    corpus.parts = (Part("many", 1, 90), Part("few", 1, 101))
    data = TranslationData(corpus, tokenizer, root=tmp_path, temperature=1e9)
    assert [part["pairs_an_epoch"] for part in data.mixture()] == pytest.approx([50.5, 50.5], abs=1)
    corpus.parts = (Part("all", 1, 101), Part("gone", 1, 140))
    with pytest.raises(DataError, match="no pair of the corpus 'gone' is left"):
        TranslationData(corpus, tokenizer, root=tmp_path)


class _Share:
    """The part of a Trainer that says which process this is."""

    def __init__(self, rank: int) -> None:
        self.global_rank = rank


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


def _trainer(**settings) -> Trainer:
    return Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing="callbacks" in settings,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        **settings,
    )


# Lightning's own use of torch, and its advice about loaders.
lightning_warnings = pytest.mark.filterwarnings(
    "ignore:.*LeafSpec:FutureWarning", "ignore::UserWarning:lightning.*"
)


@lightning_warnings
@pytest.mark.parametrize("workers", [0, 2])
def test_lightning_reads_every_epoch_whole_and_goes_on_exactly(
    corpus, tokenizer, tmp_path, workers: int
) -> None:
    settings = {"root": tmp_path, "batch_tokens": 599, "seed": 3, "workers": workers}
    loader = TranslationData(corpus, tokenizer, **settings).train_dataloader()
    n, expected = len(loader), []
    for epoch in (0, 1):
        loader.set_epoch(epoch)
        expected += [rows.tolist() for rows in loader.sampler.batches()]
    assert n > 3
    whole = _Recorder()
    every_update = ModelCheckpoint(
        tmp_path, "{step}", every_n_train_steps=1, save_top_k=-1, save_weights_only=False
    )
    _trainer(max_epochs=2, callbacks=[every_update]).fit(whole, loader)
    assert whole.seen == expected
    for stop in (2, n - 1, n, n + 2):
        resumed = _Recorder()
        _trainer(max_epochs=2).fit(
            resumed,
            TranslationData(corpus, tokenizer, **settings).train_dataloader(),
            ckpt_path=tmp_path / f"step={stop}.ckpt",
            weights_only=True,
        )
        assert resumed.seen == expected[stop:], f"stopped after {stop} of {n} batches an epoch"


def test_a_mixture_with_pieces_drawn_anew(corpus, tokenizer, tmp_path) -> None:
    corpus.parts = (Part("many", 0.5, 71), Part("few", 2, 101))
    settings = {"root": tmp_path, "batch_tokens": 157, "seed": 4}
    data = TranslationData(corpus, tokenizer, sampling=SamplingConfig(alpha=0.3), **settings)
    loader = data.train_dataloader()
    expected = [part["pairs_an_epoch"] for part in data.mixture()]
    assert expected == [round(0.5 * 71), 60]
    for epoch in (0, 1):
        loader.set_epoch(epoch)
        counts = Counter(k for batch in loader for k in batch.index.tolist())
        assert [sum(counts[k] for k in range(*part)) for part in ((0, 71), (71, 101))] == expected
        assert {counts[k] for k in range(71, 101)} == {2}
