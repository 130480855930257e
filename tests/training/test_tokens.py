"""An update's gradient is that of one mean over all its target tokens, however they are cut."""

import os
import subprocess
import sys
from pathlib import Path

import lightning
import pytest
import torch
from tests.training.conftest import NumberData

from kakehashi.data.batching import Batch
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.training.config import ObjectiveConfig, OptimizerConfig
from kakehashi.training.fit import quiet_lightning
from kakehashi.training.guidance import Guide
from kakehashi.training.lexicon import learn_lexicon
from kakehashi.training.module import TranslationTask
from kakehashi.training.schedule import Schedule, ScheduleConfig

pytestmark = pytest.mark.filterwarnings("ignore:.*no `val_dataloader`")

EPS = 0.1
Gradients = dict[str, torch.Tensor]


def double_model():
    torch.manual_seed(7)
    config = TransformerConfig(
        encoder_layers=1, decoder_layers=1, d_model=16, d_feedforward=24, n_heads=2, dropout=0.0
    )
    return build_model(config, 17).double()


class Watched(TranslationTask):
    """Keeps the gradients that the optimiser is given, and the figures of each update."""

    def configure_gradient_clipping(self, *arguments, **named) -> None:
        super().configure_gradient_clipping(*arguments, **named)
        found = {n: p.grad.clone() for n, p in self.model.named_parameters() if p.grad is not None}
        self.seen.append((found, self.loss, self.nll, self.gradient_norm, self.tokens))

    def on_train_end(self) -> None:
        if self.trainer.world_size > 1:
            torch.save(self.seen, f"process-{self.trainer.global_rank}.pt")


class Shares(lightning.LightningDataModule):
    """The batches, dealt out to the processes."""

    def __init__(self, batches: list[Batch]) -> None:
        super().__init__()
        self.batches = batches

    def train_dataloader(self):
        mine = self.batches[self.trainer.global_rank :: self.trainer.world_size]
        return torch.utils.data.DataLoader(mine, batch_size=None)


def updates(model, batches: list[Batch], accumulate: int, clip=None, guide=None, processes=1):
    """What Lightning's loop makes of the batches, one epoch of them, with a rate of next to 0."""
    task = Watched(
        model,
        ObjectiveConfig(EPS),
        OptimizerConfig("adamw", learning_rate=1e-30),
        Schedule(ScheduleConfig("constant", warmup_updates=1), 10),
        validator=None,  # type: ignore[arg-type]
        facts={},
        guide=guide,
    )
    task.seen = []
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=1,
        accumulate_grad_batches=accumulate,
        gradient_clip_val=clip,
        precision="64-true",
        devices=processes,
        strategy="auto" if processes == 1 else "ddp_fork",
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with quiet_lightning():
        trainer.fit(task, Shares(batches))
    return task.seen


def brute_force(model, batches: list[Batch], guide=None) -> tuple[Gradients, float, float]:
    """Every pair alone, token by token, by the definition of label smoothing."""
    loss, nll, tokens = torch.zeros((), dtype=torch.float64), 0.0, 0
    for batch in batches:
        for r in range(len(batch.index)):
            source = batch.source[r : r + 1, : int(batch.source_allowed[r].sum())]
            length = int(batch.target_allowed[r].sum())
            target, answer = batch.target[r : r + 1, :length], batch.target_output[r, :length]
            allowed = torch.ones_like(source, dtype=torch.bool)
            log_p = model(source, allowed, target).log_softmax(-1)[0]
            chosen = log_p[torch.arange(length), answer]
            loss = loss - (1 - EPS) * chosen.sum() - EPS * log_p.mean(1).sum()
            nll, tokens = nll - chosen.sum().item(), tokens + length
            if guide is not None:
                _, cross = model.attending_features(source, allowed, target)
                real = torch.ones_like(target, dtype=torch.bool)
                pull = guide.loss(cross, source, answer.unsqueeze(0), allowed, real)
                loss = loss + guide.weight(0) * pull
    model.zero_grad()
    (loss / tokens).backward()
    return (
        {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None},
        loss.item() / tokens,
        nll / tokens,
    )


def assert_equal(got: Gradients, want: Gradients, factor=1.0, rtol=1e-9, atol=1e-12) -> None:
    assert got.keys() == want.keys()
    for name, gradient in got.items():
        torch.testing.assert_close(gradient, factor * want[name], rtol=rtol, atol=atol)


def cut_into_seven(numbers) -> list[Batch]:
    rows = torch.arange(23).split([1, 2, 9, 3, 1, 5, 2])
    return [numbers.valid.batch(part.numpy()) for part in rows]


@pytest.fixture
def cut(numbers) -> list[Batch]:
    """Seven batches of very different sizes."""
    return cut_into_seven(numbers)


@pytest.fixture
def whole(numbers):
    """One batch of the same pairs as some of the seven."""
    return lambda parts: numbers.valid.batch(torch.cat([b.index for b in parts]).numpy())


def test_four_small_batches_are_one_large_one_and_both_are_the_formula(cut, whole):
    model = double_model()
    (four,) = updates(model, cut[:4], accumulate=4)
    (one,) = updates(model, [whole(cut[:4])], accumulate=1)
    want, loss, nll = brute_force(model, cut[:4])
    for gradients, *figures, tokens in (four, one):
        assert_equal(gradients, want)
        norm = torch.cat([g.flatten() for g in want.values()]).norm().item()
        assert figures == pytest.approx([loss, nll, norm], rel=1e-9)
        # source and target tokens, an EOS on each side
        assert tokens == sum(int(b.source_allowed.sum()) + b.n_target_tokens for b in cut[:4])
    assert_equal(four[0], one[0])


def test_the_short_window_at_the_end_of_an_epoch_is_a_mean_like_every_other(cut):
    model = double_model()
    first, last = updates(model, cut, accumulate=5)
    for (gradients, loss, *_), batches in ((first, cut[:5]), (last, cut[5:])):
        want, expected, _ = brute_force(model, batches)
        assert_equal(gradients, want)
        assert loss == pytest.approx(expected, rel=1e-9)


def test_the_guided_head_weighs_every_token_alike_too(numbers, cut):
    model = double_model()
    guide = Guide(learn_lexicon(numbers.valid, 17), 17, 0.3, 10)
    ((gradients, loss, *_),) = updates(model, cut[:3], accumulate=3, guide=guide)
    want, expected, _ = brute_force(model, cut[:3], guide)
    # the alignment is made in float32
    assert_equal(gradients, want, rtol=1e-5, atol=1e-8)
    assert loss == pytest.approx(expected, rel=1e-6)


def test_clipping_is_by_the_norm_of_that_gradient(cut):
    model = double_model()
    want, *_ = brute_force(model, cut[:3])
    norm = torch.cat([g.flatten() for g in want.values()]).norm().item()
    ((gradients, *_),) = updates(model, cut[:3], accumulate=3, clip=norm / 3)
    assert_equal(gradients, want, (norm / 3) / (norm + 1e-6))
    ((gradients, *_),) = updates(model, cut[:3], accumulate=3, clip=3 * norm)
    assert_equal(gradients, want)


@pytest.mark.slow
def test_two_processes_make_one_mean(cut, tmp_path):
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.training.test_tokens"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{root / 'src'}:{root}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    windows = (cut[:4], cut[4:6])  # two batches of each process, then one
    counted = [0, 0]
    for rank in (0, 1):
        seen = torch.load(tmp_path / f"process-{rank}.pt")
        assert len(seen) == len(windows)
        for (gradients, loss, nll, _, tokens), batches in zip(seen, windows, strict=True):
            want, *figures = brute_force(double_model(), batches)
            assert_equal(gradients, want)
            assert [loss, nll] == pytest.approx(figures, rel=1e-9)
            counted[rank] = tokens
    assert sum(counted) == sum(int(b.source_allowed.sum()) + b.n_target_tokens for b in cut[:6])


if __name__ == "__main__":  # the script of the test above
    updates(double_model(), cut_into_seven(NumberData())[:6], accumulate=2, processes=2)
