"""What every translation model promises the rooms above, whichever model and score it is."""

import copy
import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kakehashi.attention import Memory
from kakehashi.models.interface import Encoded, TranslationModel
from kakehashi.symbols import BOS

V = 29
Model = TranslationModel[Any]
PRECISIONS = [(torch.float32, 1e-5), (torch.float64, 1e-12)]


def memories(state: Any) -> list[Memory]:
    """The source side of a state of either model."""
    if hasattr(state, "memories"):
        return list(state.memories)
    return [state.memory]


def repeated(encoded: Encoded, source_rows: list[int]) -> Encoded:
    return Encoded(encoded.annotations[source_rows], encoded.allowed[source_rows])


def test_shapes(model: Model, sentences: Any) -> None:
    encoded = model.encode(sentences.source, sentences.allowed)
    assert encoded.annotations.shape[:2] == (3, 7)
    assert torch.equal(encoded.allowed, sentences.allowed)
    features = model.features(sentences.source, sentences.allowed, sentences.target)
    assert features.shape == (3, 5, model.output.in_features)
    logits = model(sentences.source, sentences.allowed, sentences.target)
    assert logits.shape == (3, 5, V)
    assert model.vocab_size == V
    torch.testing.assert_close(logits, features @ model.output.weight.T, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("dtype", "close"), PRECISIONS)
def test_step_by_step_equals_the_whole(
    model: Model, sentences: Any, dtype: torch.dtype, close: float
) -> None:
    model = model.to(dtype)
    whole = model(sentences.source, sentences.allowed, sentences.target)
    state = model.start(model.encode(sentences.source, sentences.allowed))
    for n in range(5):
        logits, state = model.step(sentences.target[:, n : n + 1], state)
        torch.testing.assert_close(logits[:, 0], whole[:, n], rtol=0, atol=close)


def test_a_step_that_tells_how_it_attends_is_the_same_step(model: Model, sentences: Any) -> None:
    """Its weights are a row of the teacher-forced maps, mean over heads.

    Of the last layer but one where there are more than two, else of the last.
    """
    source, allowed, target = sentences.source, sentences.allowed, sentences.target
    maps = model.attention_maps(source, allowed, target).cross
    aligning = maps[-2] if len(maps) > 2 else maps[-1]
    plain = model.start(model.encode(source, allowed))
    state = model.start(model.encode(source, allowed))
    for n in range(5):
        tokens = target[:, n : n + 1]
        logits, plain = model.step(tokens, plain)
        attending, state, weights = model.attending_step(tokens, state)
        torch.testing.assert_close(attending, logits, rtol=0, atol=1e-5)
        torch.testing.assert_close(weights[:, 0], aligning.mean(1)[:, n], rtol=0, atol=1e-5)


def test_steps_of_many_reordered_hypotheses_equal_the_whole(
    model: Model, draw_sentences: Any
) -> None:
    """19 steps (past the cache's first 16) of a search that chooses at random.

    Beside the state stands the plainest one there is: a list of tokens for each hypothesis.
    """
    chance = random.Random(3)
    sentences = draw_sentences([7, 4, 1, 2, 5], 1)
    encoded = model.encode(sentences.source, sentences.allowed)
    kept, k = list(range(5)), 2
    pasts: list[list[list[int]]] = [[[] for _ in range(k)] for _ in kept]
    state = model.start(encoded, k)
    for step in range(19):
        for past in (past for sentence in pasts for past in sentence):
            past.append(chance.randrange(2, V) if step else BOS)
        tokens = torch.tensor([[past[-1] for past in sentence] for sentence in pasts])
        logits, state = model.step(tokens, state)
        assert logits.shape == (len(kept), k, V)
        if step in {0, 5, 15, 16, 18}:
            rows = [sentence for sentence in kept for _ in range(k)]
            target = torch.tensor([past for sentence in pasts for past in sentence])
            whole = model(sentences.source[rows], sentences.allowed[rows], target)
            torch.testing.assert_close(logits.flatten(0, 1), whole[:, -1], rtol=0, atol=1e-12)
        positions = list(range(len(kept)))
        dropping = step in {2, 9, 16}
        if dropping:
            positions.pop(chance.randrange(len(positions)))
            chance.shuffle(positions)
        new_k = chance.choice([1, 2, 3, 5])
        picks = [[chance.randrange(k) for _ in range(new_k)] for _ in positions]
        flat = [[i * k + j for j in row] for i, row in zip(positions, picks, strict=True)]
        state = model.select(
            state, torch.tensor(flat), torch.tensor(positions) if dropping else None
        )
        pasts = [[list(pasts[i][j]) for j in row] for i, row in zip(positions, picks, strict=True)]
        kept, k = [kept[i] for i in positions], new_k
    assert len(kept) == 2


def test_a_search_never_copies_the_source_side(model: Model, sentences: Any) -> None:
    encoded = model.encode(sentences.source, sentences.allowed)
    state = model.start(encoded, 5)
    first = memories(state)
    assert all(memory.key.shape[0] == memory.value.shape[0] == 3 for memory in first)
    for _ in range(3):
        _, state = model.step(torch.full((3, 5), 11), state)
        state = model.select(state, torch.randint(5, (3, 5)) + 5 * torch.arange(3)[:, None])
    for memory, before in zip(memories(state), first, strict=True):
        assert memory.key.data_ptr() == before.key.data_ptr()
        assert memory.value.data_ptr() == before.value.data_ptr()
    state = model.select(state, torch.tensor([[12, 10], [2, 2]]), torch.tensor([2, 0]))
    for memory, before in zip(memories(state), first, strict=True):
        assert torch.equal(memory.key, before.key[[2, 0]])
        assert torch.equal(memory.value, before.value[[2, 0]])
        assert memory.allowed is not None
        assert torch.equal(memory.allowed[:, 0, 0] == 0, sentences.allowed[[2, 0]])


def test_hypotheses_start_equal_and_do_not_see_each_other(
    default_model: Model, sentences: Any
) -> None:
    model = default_model
    encoded = model.encode(sentences.source, sentences.allowed)
    together = model.start(encoded, 3)
    alone = [model.start(encoded, 1) for _ in range(3)]
    tokens = torch.full((3, 3), BOS)
    for _ in range(3):
        logits, together = model.step(tokens, together)
        for k in range(3):
            expected, alone[k] = model.step(tokens[:, k : k + 1], alone[k])
            torch.testing.assert_close(logits[:, k : k + 1], expected, rtol=0, atol=1e-12)
        tokens = torch.randint(4, V, (3, 3))


def test_two_searches_can_part_from_one_state(default_model: Model, sentences: Any) -> None:
    """``select`` gives a state of its own: what one search does afterwards is not the other's."""
    model = default_model
    state = model.start(model.encode(sentences.source, sentences.allowed))
    _, state = model.step(sentences.target[:, :1], state)
    rows = torch.arange(3)[:, None]
    one, other = model.select(state, rows), model.select(state, rows)
    _, one = model.step(torch.full((3, 1), 11), one)
    _, other = model.step(torch.full((3, 1), 13), other)
    last = torch.full((3, 1), 17)
    for state, middle in ((one, 11), (other, 13)):
        logits, _ = model.step(last, state)
        target = torch.tensor([[BOS, middle, 17]]).expand(3, -1)
        whole = model(sentences.source, sentences.allowed, target)
        torch.testing.assert_close(logits[:, 0], whole[:, -1], rtol=0, atol=1e-12)


def test_a_later_token_alters_no_earlier_logit(model: Model, sentences: Any) -> None:
    whole = model(sentences.source, sentences.allowed, sentences.target)
    for n in (1, 2, 4):
        changed = sentences.target.clone()
        changed[:, n:] = (changed[:, n:] + 5) % V
        logits = model(sentences.source, sentences.allowed, changed)
        assert torch.equal(logits[:, :n], whole[:, :n])
        assert (logits[:, n] != whole[:, n]).any(-1).all()


def test_no_gradient_flows_from_the_future(model: Model, sentences: Any) -> None:
    """d features[n] / d embedding of target token j is exactly zero for j > n, and not for j <= n.

    Every target token is a different one and occurs in no source, so the gradient of a token's
    row in the embedding matrix is the gradient of that position.
    """
    target = torch.tensor([[BOS, 25, 26, 27, 28]])
    source = sentences.source[:1].clamp(max=20)
    features = model.features(source, sentences.allowed[:1], target)[0]
    table = target_table(model)
    for n in range(5):
        (gradient,) = torch.autograd.grad(features[n].square().sum(), table, retain_graph=True)
        of_position = gradient[target[0]].abs().sum(-1)
        assert (of_position[n + 1 :] == 0).all()
        assert (of_position[: n + 1] > 0).all()


def target_table(model: Model) -> Tensor:
    embedding = getattr(model, "target_embedding", None)
    table = model.target_table if embedding is None else embedding.table
    assert isinstance(table, nn.Embedding)
    return table.weight


def real_loss(model: Model, sentences: Any, n: int = 5) -> Tensor:
    """A loss that reads every logit of the n real target tokens."""
    logits: Tensor = model(sentences.source, sentences.allowed, sentences.target)[:, :n]
    return logits.logsumexp(-1).sum() + logits[..., 11].square().sum()


@pytest.mark.parametrize(("dtype", "close"), PRECISIONS)
def test_padding_changes_nothing(
    model: Model, sentences: Any, dtype: torch.dtype, close: float
) -> None:
    model = model.to(dtype)
    wider = sentences.double_width()
    logits = model(sentences.source, sentences.allowed, sentences.target)
    padded = model(wider.source, wider.allowed, wider.target)[:, :5]
    torch.testing.assert_close(padded, logits, rtol=0, atol=close)
    parameters = list(model.parameters())
    expected = torch.autograd.grad(real_loss(model, sentences), parameters)
    gradients = torch.autograd.grad(real_loss(model, wider), parameters)
    for one, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=10 * close)


def test_what_stands_on_padding_is_never_read(default_model: Model, sentences: Any) -> None:
    model = default_model
    logits = model(sentences.source, sentences.allowed, sentences.target)
    scribbled = torch.where(sentences.allowed, sentences.source, 23)
    assert torch.equal(model(scribbled, sentences.allowed, sentences.target), logits)


@pytest.mark.parametrize(("dtype", "close"), PRECISIONS)
def test_a_sentence_is_the_same_alone_and_in_any_batch(
    default_model: Model, sentences: Any, dtype: torch.dtype, close: float
) -> None:
    model = default_model.to(dtype)
    together = model(sentences.source, sentences.allowed, sentences.target)
    order = torch.tensor([2, 0, 1])
    moved = model(sentences.source[order], sentences.allowed[order], sentences.target[order])
    torch.testing.assert_close(moved, together[order], rtol=0, atol=close)
    for b, length in enumerate(sentences.allowed.sum(-1).tolist()):
        source = sentences.source[b : b + 1, :length]
        allowed = sentences.allowed[b : b + 1, :length]
        alone = model(source, allowed, sentences.target[b : b + 1])
        torch.testing.assert_close(alone[0], together[b], rtol=0, atol=close)


def test_batch_gradient_is_the_sum_of_the_sentences_gradients(
    default_model: Model, sentences: Any
) -> None:
    model = default_model
    parameters = list(model.parameters())
    together = torch.autograd.grad(real_loss(model, sentences), parameters)
    total = [torch.zeros_like(p) for p in parameters]
    for b in range(3):
        one = type(sentences)(
            sentences.source[b : b + 1], sentences.allowed[b : b + 1], sentences.target[b : b + 1]
        )
        gradients = torch.autograd.grad(real_loss(model, one), parameters)
        total = [so_far + new for so_far, new in zip(total, gradients, strict=True)]
    for one, other in zip(together, total, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


def test_a_gradient_reaches_every_parameter(model: Model, sentences: Any) -> None:
    real_loss(model.train(), sentences).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        # A key's bias adds the same to all scores of a query, which softmax forgets, unless a
        # tanh comes between.
        if name.endswith("key.bias") and model.config.score.name != "additive":
            assert parameter.grad.abs().max() < 1e-10, name
        else:
            assert parameter.grad.abs().max() > 1e-10, name


@pytest.mark.parametrize(
    "kind",
    [
        ("transformer", "pre-rms-relu", "dot"),
        ("transformer", "pre-rms-relu", "additive"),
        ("rnn", "tied", "additive"),
    ],
)
def test_a_very_long_sentence_stays_finite(
    kind: tuple[str, str, str], make_model: Any, draw_sentences: Any
) -> None:
    model = make_model(*kind).float()
    sentences = draw_sentences([300, 1], 300)
    logits = model(sentences.source, sentences.allowed, sentences.target)
    assert logits.isfinite().all()
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("kind", [("transformer", "pre-rms-relu"), ("rnn", "tied")])
@torch.inference_mode()
def test_a_search_may_go_on_for_long(kind: tuple[str, str], make_model: Any) -> None:
    """131 steps: past the first 64 positions, with the caches' room doubled four times."""
    model = make_model(*kind, "scaled_dot")
    target = torch.randint(4, V, (1, 131))
    source, allowed = torch.tensor([[5, 7, 11, 3]]), torch.ones(1, 4, dtype=torch.bool)
    state = model.start(model.encode(source, allowed))
    steps = []
    for n in range(131):
        logits, state = model.step(target[:, n : n + 1], state)
        steps.append(logits)
    whole = model(source, allowed, target)
    torch.testing.assert_close(torch.cat(steps, 1), whole, rtol=0, atol=1e-12)


def test_a_single_token_on_either_side(model: Model) -> None:
    source, target = torch.tensor([[3]]), torch.tensor([[BOS]])
    logits = model(source, torch.ones(1, 1, dtype=torch.bool), target)
    assert logits.shape == (1, 1, V)
    assert logits.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_reduced_precision_comes_close(
    default_model: Model, sentences: Any, dtype: torch.dtype
) -> None:
    model = default_model.float()
    whole = model(sentences.source, sentences.allowed, sentences.target)
    with torch.autocast("cpu", dtype):
        logits = model(sentences.source, sentences.allowed, sentences.target)
        state = model.start(model.encode(sentences.source, sentences.allowed), 2)
        for n in range(5):
            step, state = model.step(sentences.target[:, n : n + 1].expand(-1, 2), state)
    assert logits.dtype == dtype
    spread = whole.std().item()
    torch.testing.assert_close(logits.float(), whole, rtol=0, atol=0.2 * spread)
    torch.testing.assert_close(step[:, 1].float(), whole[:, -1], rtol=0, atol=0.2 * spread)
    logits.float().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    # Without gradients a search works in place, which must not make anything less precise.
    with torch.no_grad(), torch.autocast("cpu", dtype):
        again = model(sentences.source, sentences.allowed, sentences.target)
        state = model.start(model.encode(sentences.source, sentences.allowed), 2)
        for n in range(5):
            later, state = model.step(sentences.target[:, n : n + 1].expand(-1, 2), state)
    torch.testing.assert_close(again, logits, rtol=0, atol=0.02 * spread)
    torch.testing.assert_close(later, step, rtol=0, atol=0.02 * spread)


def test_dropout_in_training_and_none_in_evaluation(default_model: Model, sentences: Any) -> None:
    model = default_model
    calm = model(sentences.source, sentences.allowed, sentences.target)
    assert torch.equal(model(sentences.source, sentences.allowed, sentences.target), calm)
    model.train()
    torch.manual_seed(5)
    first = model(sentences.source, sentences.allowed, sentences.target)
    second = model(sentences.source, sentences.allowed, sentences.target)
    torch.manual_seed(5)
    again = model(sentences.source, sentences.allowed, sentences.target)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert not torch.equal(first, calm)


def test_the_parameters_are_all_there_is_to_a_model(default_model: Model, sentences: Any) -> None:
    """A copy with the same parameters is the same model, and nothing a call did stays behind."""
    model = default_model
    before = set(model.state_dict())
    logits = model(sentences.source, sentences.allowed, sentences.target)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert not torch.equal(other(sentences.source, sentences.allowed, sentences.target), logits)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(sentences.source, sentences.allowed, sentences.target), logits)
    assert (
        set(model.state_dict())
        == before
        == {n for n, _ in model.named_parameters(remove_duplicate=False)} | {"output.silence"}
    )
