"""A removed head contributes nothing, and nothing else has changed."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kakehashi.attention import Attention
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import EvaluationError
from kakehashi.evaluation.scores import corpus_bleu
from kakehashi.inference.bundle import Bundle
from kakehashi.inference.options import Options
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator
from kakehashi.insight.ablation import ablation, torch_engine, without
from kakehashi.insight.headtable import removals
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.models.interface import Head, TranslationModel
from kakehashi.models.rnn import RNNSearch
from kakehashi.symbols import BOS, EOS, PAD

V = 29
MODELS = {
    "transformer": TransformerConfig(
        encoder_layers=1, decoder_layers=2, d_model=8, d_feedforward=7, n_heads=2
    ),
    "post-norm with biases": TransformerConfig(
        encoder_layers=1,
        decoder_layers=1,
        d_model=12,
        d_feedforward=7,
        n_heads=3,
        norm_position="post",
        norm="layer",
        bias=True,
    ),
    "rnn": RNNConfig(d_embedding=7, d_hidden=5, d_attention=3, d_maxout=7),
}
SOURCE = torch.tensor([[5, 9, 7, EOS], [11, EOS, PAD, PAD]])
TARGET = torch.tensor([[BOS, 8, 6], [BOS, 5, 5]])


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> TranslationModel[Any]:
    torch.manual_seed(3)
    model = build_model(MODELS[request.param], V)
    with torch.no_grad():  # what starts as zeros would hide mistakes
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.double().eval()


def _attention(model: TranslationModel[Any], head: Head) -> Attention:
    """The module that a head is of, found by name."""
    if isinstance(model, RNNSearch):
        return model.attention
    stack = model.get_submodule("encoder" if head.attention == "encoder" else "decoder")
    name = "cross_attention" if head.attention == "cross" else "self_attention"
    found = stack.get_submodule(f"{head.layer}.{name}")
    assert isinstance(found, Attention)
    return found


def _silence(attention: Attention, head: int) -> Any:
    """Take a head's context for 0 while the model runs."""

    def silent(module: nn.Module, given: tuple[Tensor]) -> tuple[Tensor]:
        heads = given[0].unflatten(-1, (attention.n_heads, -1)).clone()
        heads[..., head, :] = 0.0
        return (heads.flatten(-2),)

    if attention.output is not None:
        return attention.output.register_forward_pre_hook(silent)
    return attention.register_forward_hook(
        lambda module, given, out: (torch.zeros_like(out[0]), out[1])
    )


def _whole(model: TranslationModel[Any]) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(SOURCE, SOURCE != PAD, TARGET)
    return logits


def _stepped(model: TranslationModel[Any]) -> Tensor:
    with torch.no_grad():
        state = model.start(model.encode(SOURCE, SOURCE != PAD))
        logits = []
        for tokens in TARGET.split(1, dim=1):
            step, state = model.step(tokens, state)
            logits.append(step)
    return torch.cat(logits, 1)


def test_every_head_is_there_once(model: TranslationModel[Any]) -> None:
    heads = model.heads()
    assert len({(h.attention, h.layer, h.number) for h in heads}) == len(heads)
    maps = model.attention_maps(SOURCE, SOURCE != PAD, TARGET)
    layers = [*maps.encoder, *maps.decoder, *maps.cross]
    assert len(heads) == sum(layer.shape[1] for layer in layers)


def test_a_model_without_a_head_is_one_whose_head_reads_nothing(
    model: TranslationModel[Any],
) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    original = _whole(model)
    for head in model.heads():
        copied = without(model, [head])
        handle = _silence(_attention(model, head), head.number)
        wanted = _whole(model)
        handle.remove()
        assert not torch.allclose(wanted, original, atol=1e-6)
        torch.testing.assert_close(_whole(copied), wanted, rtol=0, atol=1e-12)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    torch.testing.assert_close(_whole(model), original, rtol=0, atol=0)


def test_heads_are_removed_together(model: TranslationModel[Any]) -> None:
    some = model.heads()[::2]
    handles = [_silence(_attention(model, head), head.number) for head in some]
    wanted = _whole(model)
    for handle in handles:
        handle.remove()
    copied = without(model, some)
    torch.testing.assert_close(_whole(copied), wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(_stepped(copied), wanted, rtol=0, atol=1e-9)


def test_every_head_is_removed_alone_and_every_layer_together() -> None:
    heads = build_model(MODELS["transformer"], V).heads()
    wanted = []
    for name, layers in (("encoder", 1), ("decoder", 2), ("cross", 2)):
        for layer in range(layers):
            wanted += [[(name, layer, 0)], [(name, layer, 1)], [(name, layer, 0), (name, layer, 1)]]
    groups = [[(h.attention, h.layer, h.number) for h in group] for group in removals(heads)]
    assert groups == wanted
    assert len(removals(build_model(MODELS["rnn"], V).heads())) == 1


@pytest.fixture(scope="module")
def translator(small_corpus: Any) -> Translator:
    tokenizer = Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)
    torch.manual_seed(7)
    model = build_model(MODELS["rnn"], tokenizer.vocab_size).eval()
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    words = [i for i, piece in enumerate(pieces) if i == EOS or not piece.startswith("<")]
    model.output.restrict(torch.tensor(words))
    decoding = DecodingConfig(beam=2, max_ratio=0.5, max_extra=2)
    config = BundleConfig(model.config, 401, "de", "en", 50, decoding, "", "")
    return Translator.of(Bundle(model, tokenizer, config))


def test_the_cost_is_the_difference_of_both_scores(
    translator: Translator, small_corpus: Any
) -> None:
    lines = small_corpus.source[:4]
    model = torch_engine(translator).model
    greedy = [t.text for t in translator.translate(lines, Options(beam=1))]
    engine = TorchEngine(without(model, model.heads()))
    other = Translator(engine, translator.tokenizer, translator.config)
    reduced = [t.text for t in other.translate(lines, Options(beam=1))]
    assert greedy != reduced
    # what the model itself says is the reference, so that something is lost
    found = ablation(translator, lines, greedy, [model.heads(), []], n_bootstrap=50)
    cost, nothing = found.costs
    assert found.bleu == corpus_bleu(greedy, greedy, "en")
    assert cost.bleu == corpus_bleu(reduced, greedy, "en")
    assert cost.loss == pytest.approx(found.bleu - cost.bleu)
    assert (nothing.loss, nothing.low, nothing.high, nothing.p_value) == (0, 0, 0, 1)


def test_what_cannot_be_scored_is_refused(translator: Translator) -> None:
    with pytest.raises(EvaluationError, match="1 and 2 lines"):
        ablation(translator, ["Hund"], ["dog", "cat"], [])
