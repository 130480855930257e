"""Ensembles: the mean of probabilities, whatever the models are."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.ensemble import Ensemble
from kakehashi.decoding.methods import Beam, Sampling
from kakehashi.decoding.search import search
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.models.interface import TranslationModel
from kakehashi.symbols import BOS, EOS

Model = TranslationModel[Any]
Pair = tuple[Tensor, Tensor]


@pytest.fixture
def other() -> Model:
    torch.manual_seed(7)
    model = build_model(
        RNNConfig(d_embedding=7, d_hidden=11, d_attention=5, d_maxout=13, tie_embeddings=False),
        vocab_size=29,
    )
    with torch.no_grad():
        model.output.weight *= 4 / model.output.weight.norm(dim=1, keepdim=True)
    return model.eval()


@pytest.mark.parametrize("method", [Beam(), Sampling()])
def test_one_model_alone_is_that_model(real: Model, sentences: Pair, method: Any) -> None:
    config = DecodingConfig(beam=3, max_extra=3, coverage_penalty=0.2)
    real.output.silence[EOS] = 3.0
    options: dict[str, Any] = {"config": config, "method": method, "n_best": 3, "keys": range(7)}
    plain = search(real, real.encode(*sentences), **options)
    ensemble = Ensemble([real])
    found = search(ensemble, ensemble.encode(*sentences), **options)
    for left, right in zip(plain, found, strict=True):
        assert [h.ids for h in left] == [h.ids for h in right]
        assert [h.score for h in left] == pytest.approx([h.score for h in right], abs=1e-5)


def test_it_says_what_any_of_its_models_says(real: Model, other: Model) -> None:
    assert Ensemble([real, other]).spoken() is None
    real.output.restrict(torch.tensor([EOS, 7, 9]))
    assert Ensemble([real, other]).spoken() is None  # the other one says all
    other.output.restrict(torch.tensor([5, 9]))
    spoken = Ensemble([real, other]).spoken()
    assert spoken is not None
    assert spoken.tolist() == [EOS, 5, 7, 9]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("coverage", [0.0, 0.2])
def test_pieces_that_are_never_said_need_not_be_looked_at(
    real: Model, other: Model, sentences: Pair, together: bool, beam: int, coverage: float
) -> None:
    """As if all of the vocabulary had been: the same translations, the same scores."""
    real.output.restrict(torch.arange(EOS, 29, 2))
    other.output.restrict(torch.arange(EOS, 29, 3))
    model = Ensemble([real, other]) if together else real
    config = DecodingConfig(beam=beam, max_extra=3, coverage_penalty=coverage)
    found = search(model, model.encode(*sentences), config=config, n_best=beam)
    model.spoken = lambda: None  # type: ignore[method-assign]
    whole = search(model, model.encode(*sentences), config=config, n_best=beam)
    for left, right in zip(found, whole, strict=True):
        assert [h.ids for h in left] == [h.ids for h in right]
        assert [h.score for h in left] == pytest.approx([h.score for h in right], abs=1e-5)


def mean_log_probability(models: list[Model], source: Tensor, allowed: Tensor, ids: Any) -> float:
    """Of pieces and EOS, with the models run teacher-forced one by one."""
    target = torch.tensor([[BOS, *ids]])
    labels = torch.tensor([*ids, EOS]).unsqueeze(1)
    with torch.no_grad():
        each = [model(source, allowed, target)[0].softmax(-1).gather(1, labels) for model in models]
    return float((sum(each) / len(each)).log().sum())


def test_the_score_is_that_of_the_mean_of_probabilities(
    real: Model, other: Model, sentences: Pair
) -> None:
    source, allowed = (rows[2:6] for rows in sentences)
    models = [real, other, real]
    for model in (real, other):
        model.output.silence[EOS] = 3.0
    ensemble = Ensemble(models).eval()
    config = DecodingConfig(beam=3, max_extra=3)
    found = search(ensemble, ensemble.encode(source, allowed), config=config, n_best=3)
    finished = [(row, h) for row, hypotheses in enumerate(found) for h in hypotheses if h.finished]
    assert len(finished) > 2
    for row, h in finished:
        width = int(allowed[row].sum())
        own = source[row : row + 1, :width], allowed[row : row + 1, :width]
        total = mean_log_probability(models, *own, h.ids)
        assert h.log_probability == pytest.approx(total, abs=1e-4)
        target = torch.tensor([[BOS, *h.ids]])
        labels = torch.tensor([*h.ids, EOS]).unsqueeze(1)
        with torch.no_grad():
            forced = ensemble(*own, target)[0].log_softmax(-1).gather(1, labels).sum()
        assert float(forced) == pytest.approx(total, abs=1e-4)


def test_the_order_of_the_models_means_nothing_and_none_is_copied(
    real: Model, other: Model, sentences: Pair
) -> None:
    config = DecodingConfig(beam=3, max_extra=3)
    first, second = Ensemble([real, other]), Ensemble([other, real])
    assert first.members[0] is real
    one = search(first, first.encode(*sentences), config=config)
    two = search(second, second.encode(*sentences), config=config)
    assert [h[0].ids for h in one] == [h[0].ids for h in two]


def test_it_says_how_it_attends(real: Model, other: Model, sentences: Pair) -> None:
    source, allowed = sentences
    target = torch.full((7, 3), 9)
    target[:, 0] = BOS
    ensemble = Ensemble([real, other]).eval()
    (cross,) = ensemble.attention_maps(source, allowed, target).cross
    assert cross.shape == (7, 1, 3, 11)
    torch.testing.assert_close(cross.sum(-1), torch.ones(7, 1, 3))
    assert not bool(cross[:, 0].transpose(1, 2)[~allowed].any())
    state = ensemble.start(ensemble.encode(source, allowed))
    for place in range(3):
        with torch.inference_mode():
            _, state, weights = ensemble.attending_step(target[:, place : place + 1], state)
        torch.testing.assert_close(weights[:, 0], cross[:, 0, place], rtol=0, atol=1e-5)


def test_refuses_models_of_different_vocabularies(real: Model) -> None:
    small = build_model(TransformerConfig(d_model=8, n_heads=1, d_feedforward=8), vocab_size=23)
    with pytest.raises(ValueError, match="29, 23"):
        Ensemble([real, small])
    with pytest.raises(ValueError, match="none"):
        Ensemble([])


def test_has_no_features_to_be_trained_with(real: Model, sentences: Pair) -> None:
    ensemble = Ensemble([copy.deepcopy(real)])
    for features in (ensemble.features, ensemble.attending_features):
        with pytest.raises(TypeError, match="no features"):
            features(*sentences, torch.full((7, 1), BOS))
