"""Silenced pieces: no probability for them, the same probabilities for all others."""

import torch
from torch.nn import functional as F

from kakehashi.layers.projection import VocabularyProjection
from kakehashi.symbols import EOS


def test_nothing_is_silenced_at_first() -> None:
    layer = VocabularyProjection(5, 11)
    h = torch.randn(3, 5)
    torch.testing.assert_close(layer(h), h @ layer.weight.T)
    assert sum(p.numel() for p in layer.parameters()) == 55


def test_the_rest_of_the_softmax_is_as_if_silenced_pieces_did_not_exist() -> None:
    torch.manual_seed(1)
    layer = VocabularyProjection(5, 11).double()
    spoken = torch.tensor([2, 3, 5, 7])
    layer.restrict(spoken)
    h = torch.randn(13, 5, dtype=torch.float64)
    p = layer(h).softmax(-1)
    alone = F.softmax(h @ layer.weight[spoken].T, dim=-1)
    torch.testing.assert_close(p[:, spoken], alone, rtol=0, atol=1e-11)
    silenced = [i for i in range(11) if i not in spoken]
    assert p[:, silenced].max() < 1e-11


def test_restricting_again_starts_anew_and_is_kept_with_the_weights() -> None:
    layer, other = VocabularyProjection(5, 11), VocabularyProjection(5, 11)
    layer.restrict(torch.tensor([4]))
    layer.restrict(torch.tensor([2, 3]))
    assert (layer.silence == 0).nonzero().flatten().tolist() == [2, 3]
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.silence, layer.silence)


def test_no_piece_is_left_out_until_one_is_silenced() -> None:
    projection = VocabularyProjection(5, 7)
    assert projection.spoken() is None
    weight, offsets = projection.of(None)
    assert weight is projection.weight
    assert offsets is None
    projection.restrict(torch.tensor([1, 4]))
    assert projection.of(None)[1] is projection.silence


def test_the_logits_of_some_pieces_are_those_of_all_at_these_pieces() -> None:
    torch.manual_seed(1)
    projection = VocabularyProjection(5, 11).double()
    projection.restrict(torch.tensor([2, 5, 7]))
    spoken = projection.spoken()
    assert spoken is not None
    assert spoken.tolist() == [2, EOS, 5, 7]  # without an end there is no translation
    h = torch.randn(13, 5, dtype=torch.float64)
    for pieces in (spoken, torch.tensor([EOS]), torch.arange(11)):
        logits = F.linear(h, *projection.of(pieces))
        torch.testing.assert_close(logits, projection(h)[:, pieces])
    projection.restrict(torch.tensor([2, EOS, 5]))
    assert projection.of(projection.spoken())[1] is None
