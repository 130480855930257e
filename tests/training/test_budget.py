"""The token budget for the memory at hand, found with memories that are made up, and a real one."""

import json
import mmap

import pytest
import torch

from kakehashi.errors import ConfigError
from kakehashi.training import budget, usage
from kakehashi.training.budget import SHARE, find_budget, measured_budget
from kakehashi.training.config import ObjectiveConfig, OptimizerConfig, TrainerConfig
from kakehashi.training.module import TranslationTask
from kakehashi.training.schedule import Schedule, ScheduleConfig

GIGABYTE = 10**9
CPU = torch.device("cpu")


@pytest.mark.parametrize("base", [0, 7 * 10**7])
@pytest.mark.parametrize("slope", [3_000, 20_000, 131_072])
def test_the_budget_fills_the_memory_and_no_more(base, slope):
    asked = []

    def took(tokens):
        asked.append(tokens)
        needed = base + slope * tokens
        return needed if needed <= GIGABYTE else None  # memory is at its end

    found = find_budget(took, GIGABYTE, most=10**9)
    assert base + slope * found.batch_tokens <= SHARE * GIGABYTE
    assert base + slope * (found.batch_tokens + budget.STEP + 1) > SHARE * GIGABYTE
    assert found.batch_tokens % budget.STEP == 0
    assert asked == [1024 * 2**k for k in range(len(asked))]
    assert found.measured == [(n, base + slope * n) for n in asked if base + slope * n <= GIGABYTE]


def test_no_more_than_asked_for_and_no_further_than_twice_what_was_measured():
    assert find_budget(lambda n: n, GIGABYTE, most=5_000).batch_tokens == 4_864
    assert find_budget(lambda n: n, GIGABYTE, most=10).batch_tokens == 1_024
    hasty = find_budget(lambda n: n, GIGABYTE, most=10**9, seconds=0.0)
    assert hasty.batch_tokens == 2 * hasty.measured[-1][0]


@pytest.mark.parametrize("took", [lambda n: None, lambda n: GIGABYTE])
def test_a_memory_that_is_too_small_is_said(took):
    with pytest.raises(ConfigError, match=r"1,024 tokens does not fit into the 1\.0 GB"):
        find_budget(took, GIGABYTE, most=10**6)


def task_of(numbers, model) -> TranslationTask:
    schedule = Schedule(ScheduleConfig(), None)
    validator = numbers.validator()
    return TranslationTask(model, ObjectiveConfig(), OptimizerConfig(), schedule, validator, {})


def test_measuring_leaves_no_trace_but_its_file(numbers, tiny_model, tmp_path):
    before = {n: p.clone() for n, p in tiny_model.named_parameters()}
    state, file = torch.get_rng_state(), tmp_path / "batch_tokens.json"
    task = task_of(numbers, tiny_model)
    sizes = []

    def longest(tokens):
        sizes.append(tokens)
        rows = torch.arange(max(1, tokens // 14)) % 23
        return numbers.valid.batch(rows.numpy())

    settings = TrainerConfig(max_updates=1, accelerator="cpu", precision="bf16-mixed")
    found = measured_budget(task, longest, settings, 4_096, file)
    assert found == 4_096 and sizes == [1024, 2048, 4096]
    assert torch.equal(torch.get_rng_state(), state)
    for name, parameter in tiny_model.named_parameters():
        assert torch.equal(parameter, before[name]) and parameter.grad is None
    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["batch_tokens"] == found and written["available"] > 10**8
    file.write_text('{"batch_tokens": 31}', encoding="utf-8")
    assert measured_budget(task, longest, settings, 4_096, file) == 31
    assert len(sizes) == 3


def test_several_processes_do_not_measure(numbers, tiny_model, tmp_path):
    settings = TrainerConfig(max_updates=1, accelerator="cpu", devices=2)
    with pytest.raises(ConfigError, match=r"trainer\.devices=1 first"):
        measured_budget(
            task_of(numbers, tiny_model), numbers.valid.batch, settings, 1, tmp_path / "file"
        )


def test_a_system_that_does_not_tell_is_said(numbers, tiny_model, tmp_path, monkeypatch):
    monkeypatch.setattr(usage, "STATUS", tmp_path / "absent")
    assert usage.peak(CPU) is usage.current(CPU) is None
    with pytest.raises(ConfigError, match="give a number"):
        measured_budget(
            task_of(numbers, tiny_model),
            numbers.valid.batch,
            TrainerConfig(max_updates=1, accelerator="cpu"),
            1,
            tmp_path / "file",
        )


def test_memory_of_the_process():
    usage.start_peak(CPU)
    before, start = usage.peak(CPU), usage.current(CPU)
    assert before is not None and start is not None
    # pages of its own: a tensor may lie where something else lay before
    with mmap.mmap(-1, 120_000_000) as block:
        block.write(bytes(120_000_000))
        now = usage.current(CPU)
    assert now is not None and start + 100_000_000 <= now
    assert usage.peak(CPU) >= before + 100_000_000


def test_a_containers_limit_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(usage, "CGROUP", tmp_path)
    free = usage.available(CPU)
    assert free is not None and free > 10**8
    (tmp_path / "memory.max").write_text("max\n")
    assert usage.available(CPU) == pytest.approx(free, rel=0.2)
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("3000000\n")
    assert usage.available(CPU) == 2_000_000
