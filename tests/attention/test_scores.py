import math

import pytest
import torch

from kakehashi.attention import Additive, Dot, General, ScaledDot, make_score

B, H, N, M, D = 2, 3, 5, 7, 11


@pytest.mark.parametrize(
    ("name", "kind", "parameters"),
    [
        ("dot", Dot, 0),
        ("scaled_dot", ScaledDot, 0),
        ("general", General, H * D * D),
        ("additive", Additive, H * D),
    ],
)
def test_make_score(name: str, kind: type, parameters: int) -> None:
    score = make_score(name, H, D)
    assert type(score) is kind
    assert sum(p.numel() for p in score.parameters()) == parameters
    assert score(torch.randn(B, H, N, D), torch.randn(B, H, M, D)).shape == (B, H, N, M)


@pytest.mark.parametrize("name", ["cosine", "Dot", ""])
def test_an_unknown_score_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match="dot, scaled_dot, general or additive"):
        make_score(name, H, D)


def test_only_dot_products_have_a_scale() -> None:
    assert make_score("dot", H, D).scale == 1.0
    assert make_score("scaled_dot", H, D).scale == pytest.approx(1 / math.sqrt(D))
    assert make_score("general", H, D).scale is None
    assert make_score("additive", H, D).scale is None


def test_general_with_the_identity_is_dot() -> None:
    general = General(H, D, D).double()
    with torch.no_grad():
        general.weight.copy_(torch.eye(D))
    q, k = torch.randn(B, H, N, D).double(), torch.randn(B, H, M, D).double()
    torch.testing.assert_close(general(q, k), Dot()(q, k), rtol=0, atol=1e-12)


def test_heads_have_parameters_of_their_own() -> None:
    for score in (General(H, D, D), Additive(H, D)):
        q, k = torch.randn(B, H, N, D), torch.randn(B, H, M, D)
        before = score(q, k)
        with torch.no_grad():
            score.weight[1] += 1.0
        changed = (score(q, k) != before).flatten(2).any(-1)
        assert changed.tolist() == [[False, True, False]] * B


def test_general_starts_with_scores_as_varied_as_scaled_dot() -> None:
    q, k = torch.randn(1, 97, 31, 61), torch.randn(1, 97, 37, 61)
    scaled = ScaledDot(61)(q, k).std().item()
    assert scaled == pytest.approx(1.0, rel=0.05)
    assert General(97, 61, 61)(q, k).std().item() == pytest.approx(scaled, rel=0.05)


def test_additive_scores_are_bounded_by_the_sum_of_its_vector() -> None:
    score = Additive(H, D)
    q, k = 1e6 * torch.randn(B, H, N, D), 1e6 * torch.randn(B, H, M, D)
    bound = score.weight.abs().sum(-1)[None, :, None, None]
    assert (score(q, k).abs() <= bound * (1 + 1e-6)).all()


@pytest.mark.parametrize("keys", [1e-3, 1.0, 10.0, 32.0])
@pytest.mark.parametrize("queries", [0.0, 1e-3, 1.0, 40.0, 200.0, 1e30])
def test_prepared_additive_scores_are_the_plain_ones(keys: float, queries: float) -> None:
    """However great the queries: exponentials neither overflow nor vanish into a wrong limit."""
    torch.manual_seed(7)
    score = Additive(H, D)
    q, k = queries * torch.randn(B, H, N, D), keys * (2 * torch.rand(B, H, M, D) - 1)
    k[0, 0, 0], q[0, 0, 0] = -keys, queries
    other, prepared = score.prepared(k)
    assert other is not score
    met = (q.double().unsqueeze(-2) + k.double().unsqueeze(-3)).tanh()
    expected = (met * score.weight.double()[:, None, None]).sum(-1)
    torch.testing.assert_close(other(q, prepared).double(), expected, rtol=0, atol=2e-6)


def test_keys_too_great_for_exponentials_stay_as_they_are() -> None:
    score, k = Additive(H, D), torch.zeros(B, H, M, D)
    for key in (k + 34.0, k - 34.0, k + torch.inf, k.bfloat16()):
        other, prepared = score.prepared(key)
        assert other is score
        assert prepared is key


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "general"])
def test_products_are_read_as_they_are(name: str) -> None:
    score, k = make_score(name, H, D), torch.randn(B, H, M, D)
    assert score.prepared(k) == (score, k)
