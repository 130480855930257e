"""What goes wrong in an update: skipped, recorded, survived, and in the end a reason to stop."""

import json
from dataclasses import asdict

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.plugins import MixedPrecision

from kakehashi.errors import TrainingError
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.training import fit as fit_module
from kakehashi.training import module as module_module
from kakehashi.training.config import (
    AveragingConfig,
    CallbacksConfig,
    LoggerConfig,
    OptimizerConfig,
    TrainerConfig,
)
from kakehashi.training.faults import FaultCounts, Faults
from kakehashi.training.fit import FitSettings, fit
from kakehashi.training.memory import in_parts, out_of_memory, padded_size
from kakehashi.training.schedule import ScheduleConfig

ACCUMULATE = 2


def model(dropout: float = 0.1):
    torch.manual_seed(0)
    config = TransformerConfig(
        encoder_layers=1,
        decoder_layers=1,
        d_model=16,
        d_feedforward=24,
        n_heads=2,
        dropout=dropout,
    )
    return build_model(config, 17)


class Witness(Callback):
    """Everything an update may change, as it stood after each."""

    def __init__(self, plugin) -> None:
        self.plugin = plugin
        self.weights, self.states, self.rates, self.batches, self.plugins = [], [], [], [], []
        self.most = []

    def setup(self, trainer, task, stage) -> None:
        if self.plugin is not None:
            trainer.strategy.precision_plugin = self.plugin

    def on_train_batch_start(self, trainer, task, batch, batch_idx) -> None:
        if not self.weights:
            self.keep(trainer, task)
        self.batches.append(batch)
        torch.manual_seed(len(self.batches))  # whatever the batches before have drawn

    def on_train_batch_end(self, trainer, task, *_) -> None:
        if trainer.global_step == len(self.weights):
            self.keep(trainer, task)

    def keep(self, trainer, task) -> None:
        state = trainer.optimizers[0].state
        named = list(task.model.named_parameters())
        self.weights.append({n: p.detach().clone() for n, p in named})
        self.states.append(
            {(n, k): torch.as_tensor(v).clone() for n, p in named for k, v in state[p].items()}
            if all(p in state for _, p in named)
            else {}
        )
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])
        self.plugins.append(type(trainer.precision_plugin).__name__)
        self.most.append(task.largest_part)


@pytest.fixture
def run(numbers, tmp_path, monkeypatch):
    """Train, watched; gives (witness, fitted, records)."""

    def go(
        trained=None,
        optimizer="muon",
        average="none",
        start=None,
        folder="run",
        plugin=None,
        **trainer,
    ):
        folder = tmp_path / folder
        folder.mkdir()
        witness = Witness(plugin)
        witness.folder = folder
        callbacks = fit_module._Run._callbacks

        def with_witness(self):
            if start is not None:
                self.faults.load_state_dict(self.faults.state_dict() | {"faults": asdict(start)})
            return [*callbacks(self), witness]

        settings = FitSettings(
            TrainerConfig(**({"validate_every": 100, "accumulate": ACCUMULATE} | trainer)),
            optimizer=OptimizerConfig(optimizer, learning_rate=0.01),
            schedule=ScheduleConfig("constant", warmup_updates=10),
            callbacks=CallbacksConfig(AveragingConfig(average, start=0.0)),
            logger=LoggerConfig(csv=False, tensorboard=False),
            pair=lambda index: {"index": index, "line": index + 1},
        )
        lightning.seed_everything(3, workers=True, verbose=False)
        with monkeypatch.context() as patched:
            patched.setattr(fit_module._Run, "_callbacks", with_witness)
            try:
                witness.fitted = fit(
                    trained or model(), numbers, numbers.validator(), settings, folder
                )
            finally:
                path = folder / "faults.jsonl"
                lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
                witness.records = [json.loads(line) for line in lines]
        return witness

    return go


@pytest.fixture
def broken(monkeypatch):
    """The loss of the training passes whose numbers (from 1) a rule picks is not a number."""
    original, calls = module_module.cross_entropy, [0]

    def choose(rule, how=lambda loss: loss * torch.nan) -> None:
        def loss(*arguments):
            calls[0] += 1
            got = original(*arguments)
            return got._replace(smoothed=how(got.smoothed)) if rule(calls[0]) else got

        monkeypatch.setattr(module_module, "cross_entropy", loss)

    return choose


class BadGradient(torch.autograd.Function):
    """The loss as it is, with an infinite gradient."""

    @staticmethod
    def forward(ctx, loss):
        return loss.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.inf


def same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize(
    ("optimizer", "how", "clip"),
    [
        ("muon", "loss", 1.0),
        ("muon", "gradient", None),
        ("adamw", "gradient", 1.0),
        ("adam", "loss", None),
    ],
)
def test_a_broken_update_is_skipped_and_recorded(run, broken, capfd, optimizer, how, clip):
    bad = BadGradient.apply if how == "gradient" else lambda loss: loss * torch.nan
    broken(lambda call: call == 6, bad)  # the second batch of the third update
    seen = run(optimizer=optimizer, average="mean", max_updates=5, clip=clip)
    moved = [not same(a, b) for a, b in zip(seen.weights, seen.weights[1:], strict=False)]
    assert moved == [True, True, False, True, True]
    assert seen.states[2] and same(seen.states[2], seen.states[3])
    assert not same(seen.states[3], seen.states[4])
    # the schedule's warm-up goes on
    assert seen.rates == pytest.approx([seen.rates[0] * (k + 1) for k in range(6)])
    assert seen.fitted.faults == FaultCounts(skipped=1, in_a_row=0)
    (record,) = seen.records
    assert (record["update"], record["epoch"], record["cause"]) == (3, 0, how)
    assert [[pair["index"] for pair in batch["pairs"]] for batch in record["batches"]] == [
        batch.index.tolist() for batch in seen.batches[4:6]
    ]
    assert record["batches"][0]["pairs"][0]["line"] == seen.batches[4].index[0] + 1
    if how == "loss":
        assert (record["loss"], record["batches"][1]["loss"]) == ("nan", "nan")
        assert 0 < record["batches"][0]["loss"] < 10
    else:
        assert record["gradient_norm"] in ("inf", "nan")
        assert 0 < record["loss"] < 10
    assert f"update 3: the {how} is not finite; the update is skipped" in capfd.readouterr().err


def test_a_skipped_update_is_in_no_average(run, broken):
    broken(lambda call: call in (5, 6))
    seen = run(average="mean", max_updates=5, validate_every=5)
    made = [seen.weights[k] for k in (1, 2, 4, 5)]
    want = {n: torch.stack([w[n] for w in made]).mean(0) for n in made[0]}
    checkpoint = torch.load(next(seen.folder.glob("checkpoints/update-5.ckpt")), weights_only=True)
    state = checkpoint["callbacks"]["WeightMean"]
    assert state["count"] == 4
    for name, weight in state["weights"].items():
        torch.testing.assert_close(weight, want[name])


def test_too_many_in_a_row_stop_the_run(run, broken, tmp_path):
    broken(lambda call: call in (3, 4) or call > 6)  # update 2 alone, then all from 4 on
    with pytest.raises(TrainingError) as caught:
        run(max_updates=20, max_faults=3)
    said = str(caught.value)
    assert "update 6: the loss is not finite, 3 times in a row (trainer.max_faults)" in said
    path = tmp_path / "run" / "faults.jsonl"
    assert str(path) in said and "optimizer.learning_rate" in said
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [record["update"] for record in records] == [2, 4, 5, 6]


@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed"])
def test_mixed_precision_falls_back_to_full(run, broken, capfd, precision):
    broken(lambda call: call > 2 and torch.is_autocast_enabled("cpu"))
    # Lightning itself has no float16 on a CPU
    plugin = MixedPrecision("16-mixed", "cpu") if precision == "16-mixed" else None
    settings = {"precision": precision} if plugin is None else {"plugin": plugin}
    seen = run(max_updates=6, max_faults=2, **settings)
    assert seen.plugins == ["MixedPrecision"] * 3 + ["Precision"] * 4
    # from the weights of the last update that was made
    assert same(seen.weights[1], seen.weights[3])
    assert not same(seen.weights[3], seen.weights[4])
    assert seen.fitted.faults == FaultCounts(skipped=2, full_precision_from=3)
    assert [record["action"] for record in seen.records] == ["skipped", "skipped", "32-true"]
    assert "in 32-true from update 4 on" in str(seen.fitted.faults)
    assert "2 times in a row in " + precision + ": the run goes on in 32-true" in (
        capfd.readouterr().err
    )


def test_full_precision_that_fails_too_stops_the_run(run, broken):
    broken(lambda call: True)
    with pytest.raises(TrainingError, match="update 4: the loss is not finite"):
        run(max_updates=9, max_faults=2, precision="bf16-mixed")


def test_float16_may_look_for_its_scale(run, broken):
    """A gradient that overflows because its scale is too high is no fault."""

    class Overflow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, loss):
            return loss.clone()

        @staticmethod
        def backward(ctx, grad):
            return torch.where(grad > 500.0, torch.inf, 1.0) * grad

    broken(lambda call: True, Overflow.apply)
    plugin = MixedPrecision("16-mixed", "cpu")
    seen = run(max_updates=6, max_faults=1, plugin=plugin)
    counts = seen.fitted.faults
    assert 1 <= counts.overflows <= 4
    assert counts == FaultCounts(overflows=counts.overflows)
    assert plugin.scaler.get_scale() == 65536 / 2**counts.overflows
    moved = [not same(a, b) for a, b in zip(seen.weights, seen.weights[1:], strict=False)]
    assert moved == [False] * counts.overflows + [True] * (6 - counts.overflows)


def test_the_state_is_plain_and_takes_effect(run, tmp_path):
    counts = FaultCounts(skipped=4, largest_part=31, full_precision_from=7)
    one = Faults(10, tmp_path / "faults.jsonl", 6)
    one.counts = counts
    torch.save(one.state_dict(), tmp_path / "state")
    other = Faults(10, tmp_path / "faults.jsonl", 6)
    other.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert other.counts == counts
    seen = run(start=counts, max_updates=2, precision="bf16-mixed")
    assert set(seen.plugins) == {"Precision"}
    assert seen.most[-1] == 31
    assert seen.fitted.faults == counts


def test_records_of_what_comes_after_a_checkpoint_are_made_again(tmp_path):
    path = tmp_path / "faults.jsonl"
    path.write_text('{"update": 3}\n{"update": 9}\n{"update": 5}\n{"upd', encoding="utf-8")
    Faults(10, path, 6)._forget_after(5)
    assert path.read_text(encoding="utf-8") == '{"update": 3}\n{"update": 5}\n'


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\u2029"])
def test_separators_in_the_text_of_a_pair_end_no_record(tmp_path, separator):
    path = tmp_path / "faults.jsonl"
    record = json.dumps({"update": 3, "source": f"ein{separator}Haus"}, ensure_ascii=False) + "\n"
    path.write_bytes(record.encode())
    Faults(10, path, 6)._forget_after(5)
    assert path.read_bytes() == record.encode()


@pytest.fixture
def small_memory(monkeypatch):
    """Memory for so many padded target places, in forward or in backward; counts the passes."""
    original, passes = module_module.TranslationTask.sums, []

    def limit(most: int, where: str) -> list[int]:
        class Full(torch.autograd.Function):
            @staticmethod
            def forward(ctx, sums):
                return sums.clone()

            @staticmethod
            def backward(ctx, grad):
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 MiB")

        def sums(self, batch):
            passes.append(padded_size(batch))
            if padded_size(batch) <= most:
                return original(self, batch)
            if where == "forward":
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")
            # some gradients have been added by then
            hooked = original(self, batch)
            embedding = next(self.model.parameters())
            return hooked + 0 * embedding.sum() + 0 * Full.apply(hooked)

        monkeypatch.setattr(module_module.TranslationTask, "sums", sums)
        return passes

    return limit


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_parts_give_what_the_whole_gives(run, small_memory, capfd, where):
    settings = {"max_updates": 4, "precision": "64-true", "optimizer": "adamw"}
    whole = run(model(dropout=0.0).double(), folder="whole", **settings)
    passes = small_memory(50, where)
    parts = run(model(dropout=0.0).double(), folder="parts", **settings)
    for name, weight in parts.weights[-1].items():
        torch.testing.assert_close(weight, whole.weights[-1][name], rtol=1e-9, atol=1e-12)
    assert parts.fitted.tokens == whole.fitted.tokens
    assert parts.fitted.validated.nll == pytest.approx(whole.fitted.validated.nll, rel=1e-9)
    largest = parts.fitted.faults.largest_part
    assert largest is not None and largest <= 60
    tried = [size for size in passes if size > 50]
    assert 1 <= len(tried) <= 3  # then it knows
    assert parts.records[0] == {"update": 1, "action": "split", "largest_part": largest}
    assert "update 1: out of memory: from this update on batches of more than" in (
        capfd.readouterr().err
    )


def test_an_update_is_begun_again_as_if_the_parts_had_always_been_small(run, small_memory):
    """With dropout: bit for bit the run that had the smaller parts from the start."""
    passes = small_memory(50, "backward")
    found = run(folder="found", max_updates=3)
    assert max(passes) > 50
    passes.clear()
    largest = found.fitted.faults.largest_part
    known = run(folder="known", max_updates=3, start=FaultCounts(largest_part=largest))
    assert max(passes) <= largest
    for a, b in zip(found.weights, known.weights, strict=True):
        assert same(a, b)


def test_a_pair_that_does_not_fit_is_named_and_its_update_skipped(run, small_memory):
    small_memory(11, "forward")
    seen = run(max_updates=3, max_faults=9)
    skipped = [record for record in seen.records if record["action"] == "skipped"]
    assert skipped and all(record["cause"] == "memory" for record in skipped)
    given = {int(i) for batch in seen.batches for i in batch.index}
    for record in skipped:
        (batch,) = record["batches"]
        (pair,) = batch["pairs"]
        assert pair["index"] in given
    with pytest.raises(TrainingError, match=r"a pair does not fit into memory.*data\.max_length"):
        run(folder="stops", max_updates=9, max_faults=1)


def test_other_errors_are_not_taken_for_missing_memory(run, monkeypatch):
    def sums(self, batch):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(module_module.TranslationTask, "sums", sums)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        run(max_updates=1)


def test_what_is_missing_memory():
    assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory."))
    assert out_of_memory(MemoryError())
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**62, dtype=torch.uint8)
    assert out_of_memory(caught.value)
    assert not out_of_memory(ValueError("can't allocate memory"))


@pytest.mark.parametrize("most", [1, 12, 40, 97, 10_000])
def test_parts_hold_all_rows_once_without_superfluous_padding(numbers, most):
    for batch in numbers.batches():
        parts = in_parts(batch, most)
        assert torch.cat([part.index for part in parts]).tolist() == batch.index.tolist()
        for part in parts:
            assert padded_size(part) <= most or len(part.index) == 1
            assert part.source_allowed.any(0).all() and part.target_allowed.any(0).all()
            again = numbers.valid.batch(part.index.numpy())
            assert torch.equal(part.source, again.source)
            assert torch.equal(part.target, again.target)
    assert in_parts(batch, None) == [batch]
