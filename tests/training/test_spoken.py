"""Training's softmax over the spoken pieces gives the loss and the gradient of the full one."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from kakehashi.data.batching import Batch
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.training.config import ObjectiveConfig, OptimizerConfig
from kakehashi.training.module import TranslationTask
from kakehashi.training.schedule import Schedule, ScheduleConfig

CONFIGS: list[Any] = [
    TransformerConfig(d_model=24, d_feedforward=29, n_heads=3, dropout=0.0),
    RNNConfig(
        d_embedding=11, d_hidden=13, d_attention=7, d_maxout=11, dropout=0.0, tie_embeddings=True
    ),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_same_loss_and_gradient_as_over_the_whole_vocabulary(config: Any) -> None:
    torch.manual_seed(5)
    model = build_model(replace(config), 31).double()
    model.output.restrict(torch.tensor([3, 7, 11, 13, 17]))
    target = torch.tensor([[2, 7, 17, 3, 0], [2, 13, 11, 7, 3]])
    source = torch.tensor([[19, 23, 29, 3], [5, 7, 3, 0]])
    batch = Batch(source, target, torch.arange(2))
    task = TranslationTask(
        model,
        ObjectiveConfig(label_smoothing=0.0),
        OptimizerConfig(),
        Schedule(ScheduleConfig(), 10),
        validator=None,  # type: ignore[arg-type]
        facts={},
    )
    sums = task.sums(batch)
    sums[0].backward()
    got = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    logits = model(source, batch.source_allowed, batch.target_input)
    real = batch.target_allowed
    loss = torch.nn.functional.cross_entropy(
        logits[real], batch.target_output[real], reduction="sum"
    )
    loss.backward()
    assert sums[1].item() == pytest.approx(loss.item(), abs=1e-9)
    assert sums[2:].tolist() == [7, 7]  # target and source tokens, an EOS each included
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(got[name], parameter.grad, rtol=0, atol=1e-9)
