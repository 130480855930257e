"""The weights that people are shown are the weights that were used."""

from typing import Any

import pytest
import torch
from torch import Tensor

from kakehashi.models.interface import TranslationModel

Model = TranslationModel[Any]


def check_rows(weights: Tensor, allowed: Tensor) -> None:
    """Each row a distribution over the allowed places, exactly zero elsewhere."""
    allowed = allowed.expand_as(weights)
    assert not weights[~allowed].any()
    assert (weights[allowed] > 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_every_row_is_a_distribution(model: Model, sentences: Any) -> None:
    maps = model.attention_maps(sentences.source, sentences.allowed, sentences.target)
    source = sentences.allowed[:, None, None]
    if model.config.name == "rnn":
        assert [tuple(weights.shape) for weights in maps.cross] == [(3, 1, 5, 7)]
        assert maps.encoder == maps.decoder == []
    else:
        assert [tuple(weights.shape) for weights in maps.cross] == [(3, 3, 5, 7)] * 2
        assert [tuple(weights.shape) for weights in maps.encoder] == [(3, 3, 7, 7)] * 2
        assert [tuple(weights.shape) for weights in maps.decoder] == [(3, 3, 5, 5)] * 2
    for weights in (*maps.cross, *maps.encoder):
        check_rows(weights, source)
    for weights in maps.decoder:
        check_rows(weights, torch.ones(5, 5).tril().bool())


def test_maps_are_of_evaluation_and_leave_every_module_as_it_was(
    default_model: Model, sentences: Any
) -> None:
    model = default_model
    batch = sentences.source, sentences.allowed, sentences.target
    calm = model.attention_maps(*batch)
    assert not any(module.training for module in model.modules())
    model.train()
    frozen = model.encoder
    assert isinstance(frozen, torch.nn.Module)
    frozen.eval()
    modes = [module.training for module in model.modules()]
    maps = model.attention_maps(*batch)
    assert [module.training for module in model.modules()] == modes
    assert len(set(modes)) == 2
    for one, other in zip(maps.cross, calm.cross, strict=True):
        assert torch.equal(one, other)
        assert not one.requires_grad


def test_modes_are_put_back_when_a_pass_fails(default_model: Model, sentences: Any) -> None:
    default_model.train()
    beyond = torch.full_like(sentences.source, 29)
    with pytest.raises(IndexError):  # token 29 is not in a vocabulary of 29
        default_model.attention_maps(beyond, sentences.allowed, sentences.target)
    assert all(module.training for module in default_model.modules())


def test_a_row_belongs_to_the_step_whose_input_is_that_token(
    default_model: Model, sentences: Any
) -> None:
    """Changing target token n changes no row before n."""
    batch = sentences.source, sentences.allowed
    maps = default_model.attention_maps(*batch, sentences.target)
    changed = sentences.target.clone()
    changed[:, 3] = (changed[:, 3] + 5) % 29
    others = default_model.attention_maps(*batch, changed)
    for one, other in zip(maps.cross, others.cross, strict=True):
        assert torch.equal(one[:, :, :3], other[:, :, :3])
    last, last_changed = maps.cross[-1][:2], others.cross[-1][:2]
    first_row = 4 if default_model.config.name == "rnn" else 3
    assert (last[:, :, first_row] != last_changed[:, :, first_row]).any(-1).all()


@pytest.mark.parametrize("training", [False, True])
def test_features_may_be_had_with_the_attention_that_made_them(
    default_model: Model, sentences: Any, training: bool
) -> None:
    """The same features, under dropout too, and weights that a loss can be taken of."""
    model = default_model.train(training)
    batch = sentences.source, sentences.allowed, sentences.target
    torch.manual_seed(5)
    features = model.features(*batch)
    torch.manual_seed(5)
    attending, cross = model.attending_features(*batch)
    torch.testing.assert_close(attending, features, rtol=0, atol=1e-12)
    if not training:
        maps = model.attention_maps(*batch).cross
        assert len(cross) == len(maps)
        for one, other in zip(cross, maps, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    for weights in cross:
        check_rows(weights, sentences.allowed[:, None, None])
    cross[-1][..., 0].sum().backward()
    last = "attention" if model.config.name == "rnn" else "decoder.1.cross_attention"
    for projection in ("query", "key"):
        weight = model.get_parameter(f"{last}.{projection}.weight")
        assert weight.grad is not None
        assert weight.grad.any()
