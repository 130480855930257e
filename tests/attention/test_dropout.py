import math

import pytest
import torch

from kakehashi.attention.dropout import check_probability, dropout, keep_mask

PROBABILITIES = [0.01, 0.1, 0.25, 0.3, 0.5, 0.9]


@pytest.mark.parametrize("p", PROBABILITIES)
def test_the_share_dropped_is_the_nearest_256th(p: float) -> None:
    n = 1_000_003
    keep, scale = keep_mask(torch.Size([n]), p)
    expected = 1 - round(256 * p) / 256
    assert abs(1 - expected - p) <= 1 / 512
    deviation = math.sqrt(expected * (1 - expected) / n)
    assert keep.dtype == torch.bool
    assert abs(keep.double().mean().item() - expected) < 5 * deviation
    assert scale == pytest.approx(1 / expected)


@pytest.mark.parametrize("p", PROBABILITIES)
def test_each_of_the_eight_bytes_of_a_word_drops_as_often(p: float) -> None:
    words = 60_013
    keep, scale = keep_mask(torch.Size([words, 8]), p)
    deviation = math.sqrt((1 / scale) * (1 - 1 / scale) / words)
    for lane in keep.double().mean(0).tolist():
        assert abs(lane - 1 / scale) < 5 * deviation


def test_the_bytes_of_a_word_are_independent() -> None:
    keep, scale = keep_mask(torch.Size([60_013, 8]), 0.5)
    centred = keep.double() - 1 / scale
    covariance = centred.T @ centred / len(keep)
    off_diagonal = covariance - torch.diag(covariance.diagonal())
    assert off_diagonal.abs().max().item() < 5 * 0.25 / math.sqrt(len(keep))


@pytest.mark.parametrize(("p", "dropped"), [(1e-9, 1), (0.001, 1), (0.999, 255), (1 - 1e-9, 255)])
def test_no_probability_drops_nothing_or_everything(p: float, dropped: int) -> None:
    keep, scale = keep_mask(torch.Size([300_007]), p)
    assert scale == pytest.approx(256 / (256 - dropped))
    assert 0 < keep.sum().item() < keep.numel()


@pytest.mark.parametrize(
    "shape", [(), (0,), (1,), (7,), (8,), (9,), (3, 5, 7), (2, 0, 3), (11, 13)]
)
def test_any_shape_will_do(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    dropped = dropout(x, 0.5, training=True)
    assert dropped.shape == shape
    assert ((dropped == 0) | (dropped == 2)).all()


def test_the_mean_stays() -> None:
    n = 1_000_003
    for p in PROBABILITIES:
        x = torch.ones(n, dtype=torch.float64)
        mean = dropout(x, p, training=True).mean().item()
        assert abs(mean - 1) < 6 * math.sqrt(p / (1 - p) / n)


@pytest.mark.parametrize("p", PROBABILITIES)
def test_the_gradient_is_dropped_where_the_value_was(p: float) -> None:
    x = torch.randn(11, 13, 17, dtype=torch.float64, requires_grad=True)
    y = dropout(x, p, training=True)
    direction = torch.randn_like(y)
    (gradient,) = torch.autograd.grad(y, x, direction)
    scale = 256 / (256 - round(256 * p))
    kept = y != 0
    torch.testing.assert_close(y, x * kept * scale)
    torch.testing.assert_close(gradient, direction * kept * scale)


def test_a_transposed_input_keeps_its_elements_apart() -> None:
    x = torch.randn(13, 17).T
    y = dropout(x, 0.5, training=True)
    torch.testing.assert_close(y, 2 * x * (y != 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_type_stays(dtype: torch.dtype) -> None:
    assert dropout(torch.ones(19, dtype=dtype), 0.5, training=True).dtype == dtype


def test_without_training_or_probability_the_input_itself_comes_back() -> None:
    x = torch.randn(7)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x


def test_the_input_is_left_alone() -> None:
    x = torch.ones(997)
    dropout(x, 0.5, training=True)
    assert torch.equal(x, torch.ones(997))


def test_the_seed_decides() -> None:
    x = torch.ones(997)
    torch.manual_seed(5)
    first, second = dropout(x, 0.5, training=True), dropout(x, 0.5, training=True)
    torch.manual_seed(5)
    assert torch.equal(dropout(x, 0.5, training=True), first)
    assert torch.equal(dropout(x, 0.5, training=True), second)
    assert not torch.equal(first, second)


def test_the_state_of_the_generator_can_be_kept_and_put_back() -> None:
    x = torch.ones(997)
    dropout(x, 0.5, training=True)
    state = torch.get_rng_state()
    first = dropout(x, 0.5, training=True)
    torch.set_rng_state(state)
    assert torch.equal(dropout(x, 0.5, training=True), first)


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
def test_a_probability_outside_zero_to_one_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        check_probability(p)


def test_other_devices_use_torchs_own_dropout() -> None:
    """The meta device stands in for an accelerator: the byte mask is made on a CPU only."""
    x = torch.empty(3, 5, device="meta")
    y = dropout(x, 0.5, training=True)
    assert y.device == x.device
    assert y.shape == x.shape
