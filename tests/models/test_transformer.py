"""The Transformer against torch's, and against one written here plainly: one sentence, no batch."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kakehashi.models.config import ScoreConfig, TransformerConfig
from kakehashi.models.transformer import DecoderLayer, EncoderLayer, Transformer

V = 29
VARIANTS = [
    "pre-rms-relu",
    "post-layer-gelu-bias",
    "pre-layer-swiglu-bias",
    "post-rms-swiglu",
]
SCORES = ("dot", "scaled_dot", "general", "additive")


class Plain:
    """The equations of Vaswani et al. (2017) for one sentence, over a model's named parameters."""

    def __init__(self, model: Transformer) -> None:
        self.parameters: dict[str, Tensor] = dict(model.state_dict())
        self.config: TransformerConfig = model.config
        self.d_head = self.config.d_model // self.config.n_heads
        self.maps: list[tuple[str, Tensor]] = []

    def linear(self, name: str, x: Tensor) -> Tensor:
        y = x @ self.parameters[f"{name}.weight"].T
        return y + self.parameters[f"{name}.bias"] if f"{name}.bias" in self.parameters else y

    def norm(self, name: str, x: Tensor) -> Tensor:
        if self.config.norm == "layer":
            x = x - x.mean(-1, keepdim=True)
        x = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        x = x * self.parameters[f"{name}.weight"]
        return x + self.parameters[f"{name}.bias"] if f"{name}.bias" in self.parameters else x

    def score(self, name: str, q: Tensor, k: Tensor, head: int) -> Tensor:
        match self.config.score.name:
            case "dot":
                return k @ q
            case "scaled_dot":
                return k @ q / math.sqrt(self.d_head)
            case "general":
                return k @ self.parameters[f"{name}.score.weight"][head] @ q
            case "additive":
                return torch.tanh(k + q) @ self.parameters[f"{name}.score.weight"][head]
        raise AssertionError(self.config.score.name)

    def attention(self, name: str, x: Tensor, y: Tensor, causal: bool) -> Tensor:
        q, k, v = (
            self.linear(f"{name}.{part}", sequence).split(self.d_head, -1)
            for part, sequence in (("query", x), ("key", y), ("value", y))
        )
        results, maps = [], torch.zeros(self.config.n_heads, len(x), len(y)).double()
        for n in range(len(x)):
            seen = n + 1 if causal else len(y)
            heads = []
            for h in range(self.config.n_heads):
                weights = self.score(name, q[h][n], k[h][:seen], h).softmax(0)
                maps[h, n, :seen] = weights
                heads.append(weights @ v[h][:seen])
            results.append(torch.cat(heads))
        self.maps.append((name, maps))
        return self.linear(f"{name}.output", torch.stack(results))

    def feedforward(self, name: str, x: Tensor) -> Tensor:
        inner = self.linear(f"{name}.inner", x)
        match self.config.activation:
            case "relu":
                inner = inner.clamp(min=0)
            case "gelu":
                inner = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2
            case "swiglu":
                inner = inner * inner.sigmoid() * self.linear(f"{name}.gate", x)
        return self.linear(f"{name}.outer", inner)

    def sublayer(self, name: str, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        norm = f"{name}_residual.norm"
        if self.config.norm_position == "pre":
            return x + f(self.norm(norm, x))
        return self.norm(norm, x + f(x))

    def embed(self, side: str, tokens: list[int]) -> Tensor:
        d = self.config.d_model
        rows = []
        for position, token in enumerate(tokens):
            angles = [position / 10000 ** (2 * j / d) for j in range(d // 2)]
            place = [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
            vector = self.parameters[f"{side}_embedding.table.weight"][token]
            rows.append(vector * math.sqrt(d) + torch.tensor(place, dtype=torch.float64))
        return torch.stack(rows)

    def layer(self, name: str, x: Tensor, y: Tensor | None) -> Tensor:
        """An encoder layer, or with annotations y to look at, a decoder layer."""
        itself = f"{name}.self_attention"
        x = self.sublayer(f"{name}.self", x, partial(self.self_attention, itself, y is not None))
        if y is not None:
            cross = partial(self.cross_attention, f"{name}.cross_attention", y)
            x = self.sublayer(f"{name}.cross", x, cross)
        feedforward = f"{name}.feedforward"
        return self.sublayer(feedforward, x, partial(self.feedforward, feedforward))

    def self_attention(self, name: str, causal: bool, x: Tensor) -> Tensor:
        return self.attention(name, x, x, causal)

    def cross_attention(self, name: str, y: Tensor, x: Tensor) -> Tensor:
        return self.attention(name, x, y, causal=False)

    def logits(self, source: list[int], target: list[int]) -> Tensor:
        y, x = self.embed("source", source), self.embed("target", target)
        pre = self.config.norm_position == "pre"
        for i in range(self.config.encoder_layers):
            y = self.layer(f"encoder.{i}", y, None)
        if pre:
            y = self.norm("encoder_norm", y)
        for i in range(self.config.decoder_layers):
            x = self.layer(f"decoder.{i}", x, y)
        if pre:
            x = self.norm("decoder_norm", x)
        return self.linear("output", x)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("variant", VARIANTS)
@torch.no_grad()
def test_a_padded_batch_equals_the_plain_transformer_sentence_by_sentence(
    variant: str, score: str, make_model: Any, sentences: Any
) -> None:
    model = make_model("transformer", variant, score)
    logits = model(sentences.source, sentences.allowed, sentences.target)
    maps = model.attention_maps(sentences.source, sentences.allowed, sentences.target)
    for b, length in enumerate(sentences.allowed.sum(-1).tolist()):
        plain = Plain(model)
        expected = plain.logits(sentences.source[b, :length].tolist(), sentences.target[b].tolist())
        torch.testing.assert_close(logits[b], expected, rtol=0, atol=1e-12)
        for name, weights in plain.maps:
            found = re.fullmatch(r"(encoder|decoder)\.(\d+)\.(self|cross)_attention", name)
            assert found is not None
            side = "cross" if found[3] == "cross" else found[1]
            ours = getattr(maps, side)[int(found[2])][b]
            if side != "decoder":
                assert not ours[..., length:].any()
            rows, columns = weights.shape[1:]
            torch.testing.assert_close(ours[:, :rows, :columns], weights, rtol=0, atol=1e-12)


def copy_attention(theirs: nn.MultiheadAttention, prefix: str, p: dict[str, Tensor]) -> None:
    parts = ("query", "key", "value")
    theirs.in_proj_weight.copy_(torch.cat([p[f"{prefix}.{part}.weight"] for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([p[f"{prefix}.{part}.bias"] for part in parts]))
    theirs.out_proj.load_state_dict(
        {"weight": p[f"{prefix}.output.weight"], "bias": p[f"{prefix}.output.bias"]}
    )


def copy_layer(ours: EncoderLayer | DecoderLayer, theirs: nn.Module) -> None:
    """Our weights into torch's layer of the same kind."""
    p = dict(ours.state_dict())
    modules = dict(theirs.named_modules())
    names = {"linear1": "feedforward.inner", "linear2": "feedforward.outer"}
    norms = ["self_residual.norm", "feedforward_residual.norm"]
    attentions = {"self_attn": "self_attention"}
    if isinstance(ours, DecoderLayer):
        norms.insert(1, "cross_residual.norm")
        attentions["multihead_attn"] = "cross_attention"
    names.update({f"norm{i}": norm for i, norm in enumerate(norms, 1)})
    for their_name, name in names.items():
        modules[their_name].load_state_dict({n: p[f"{name}.{n}"] for n in ("weight", "bias")})
    for their_name, name in attentions.items():
        module = modules[their_name]
        assert isinstance(module, nn.MultiheadAttention)
        copy_attention(module, name, p)


@pytest.mark.parametrize("norm_position", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@torch.no_grad()
def test_the_stacks_are_torchs(
    norm_position: str, activation: str, make_model: Any, sentences: Any
) -> None:
    model = make_model(
        "transformer",
        "post-layer-gelu-bias",
        "scaled_dot",
        norm_position=norm_position,
        activation=activation,
    )
    d_model = model.config.d_model
    settings: dict[str, Any] = {
        "d_model": d_model,
        "nhead": 3,
        "dim_feedforward": 17,
        "dropout": 0.0,
        "activation": activation,
        "layer_norm_eps": 1e-6,
        "batch_first": True,
        "norm_first": norm_position == "pre",
        "dtype": torch.float64,
    }
    x = torch.randn(3, 7, d_model, dtype=torch.float64)
    for layer in model.encoder:
        theirs = nn.TransformerEncoderLayer(**settings)
        copy_layer(layer, theirs)
        expected = theirs(x, src_key_padding_mask=~sentences.allowed)
        result, _ = layer(x, sentences.allowed[:, None, None])
        torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)
        x = result
    y = torch.randn(3, 5, d_model, dtype=torch.float64)
    causal = torch.ones(5, 5).triu(1).bool()
    for layer in model.decoder:
        their_decoder = nn.TransformerDecoderLayer(**settings)
        copy_layer(layer, their_decoder)
        expected = their_decoder(y, x, tgt_mask=causal, memory_key_padding_mask=~sentences.allowed)
        result, _, _ = layer(y, ~causal[None, None], x, sentences.allowed[:, None, None])
        torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)
        y = result


def number_of_parameters(c: TransformerConfig, vocab_size: int) -> int:
    """Counted by hand."""
    d, f, h = c.d_model, c.d_feedforward, c.n_heads
    bias = 1 if c.bias else 0
    score = {"dot": 0, "scaled_dot": 0, "general": h * (d // h) ** 2, "additive": d}[c.score.name]
    attention = 4 * (d * d + bias * d) + score
    wide = 2 if c.activation == "swiglu" else 1
    feedforward = wide * (d * f + bias * f) + f * d + bias * d
    norm = 2 * d if c.norm == "layer" and c.bias else d
    encoder = c.encoder_layers * (attention + feedforward + 2 * norm)
    decoder = c.decoder_layers * (2 * attention + feedforward + 3 * norm)
    final = 2 * norm if c.norm_position == "pre" else 0
    tables = 1 if c.tie_embeddings else 3
    return tables * vocab_size * d + encoder + decoder + final


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("activation", ["relu", "swiglu"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("norm", "norm_position", "tie_embeddings"),
    [
        ("layer", "pre", False),
        ("layer", "post", True),
        ("rms", "pre", True),
        ("rms", "post", False),
    ],
)
def test_number_of_parameters(
    score: str, activation: str, bias: bool, norm: str, norm_position: str, tie_embeddings: bool
) -> None:
    config = TransformerConfig(
        encoder_layers=1,
        decoder_layers=2,
        d_model=30,
        d_feedforward=17,
        n_heads=3,
        activation=activation,
        norm=norm,
        norm_position=norm_position,
        bias=bias,
        tie_embeddings=tie_embeddings,
        score=ScoreConfig(score),
    )
    model = Transformer(config, V)
    assert sum(p.numel() for p in model.parameters()) == number_of_parameters(config, V)


def test_the_paper_s_base_model_has_its_65_million_parameters() -> None:
    """Table 3 of the paper: 65 million for base, with 37,000 shared pieces, ReLU and biases."""
    config = TransformerConfig(
        encoder_layers=6,
        decoder_layers=6,
        d_model=512,
        d_feedforward=2048,
        n_heads=8,
        norm="layer",
        norm_position="post",
        bias=True,
    )
    assert number_of_parameters(config, 37_000) == pytest.approx(65e6, rel=0.05)


def test_tied_embeddings_are_one_tensor(make_model: Any) -> None:
    model = make_model("transformer", "pre-rms-relu", "dot", tie_embeddings=True).float()
    tables = [
        model.source_embedding.table.weight,
        model.target_embedding.table.weight,
        model.output.weight,
    ]
    assert len({id(table) for table in tables}) == 1
    untied = make_model("transformer", "pre-rms-relu", "dot", tie_embeddings=False)
    tables = [
        untied.source_embedding.table.weight,
        untied.target_embedding.table.weight,
        untied.output.weight,
    ]
    assert len({table.data_ptr() for table in tables}) == 3


def test_embeddings_start_at_unit_norm_and_biases_at_zero() -> None:
    config = TransformerConfig(d_model=128, bias=True, tie_embeddings=False)
    model = Transformer(config, 997)
    for table in (model.source_embedding.table, model.target_embedding.table):
        assert table.weight.norm(dim=1).mean().item() == pytest.approx(1.0, rel=0.02)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name


def test_a_fresh_pre_norm_stack_adds_nothing_to_the_stream(sentences: Any) -> None:
    """Its first updates then shape an identity; a post-norm stack has no stream to leave alone."""
    batch = sentences.source, sentences.allowed, sentences.target
    config = TransformerConfig(d_model=30, n_heads=3, d_feedforward=17)
    model = Transformer(config, V).eval()
    embedded = model.decoder_norm(model.target_embedding(sentences.target))
    torch.testing.assert_close(model.features(*batch), embedded, rtol=0, atol=0)
    post = Transformer(replace(config, norm_position="post"), V).eval()
    assert not torch.equal(post.features(*batch), post.target_embedding(sentences.target))
    for name, parameter in (*model.named_parameters(), *post.named_parameters()):
        if parameter.dim() == 2 and parameter.any() and "score" not in name:
            width = parameter.shape[1]
            assert parameter.std().item() == pytest.approx(width**-0.5, rel=0.15), name


def test_attention_and_activation_dropout_are_set_apart(make_model: Any, sentences: Any) -> None:
    """Each probability alone changes the training pass, and none of them evaluation."""
    for setting in ("dropout", "attention_dropout", "activation_dropout"):
        off = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
        torch.manual_seed(7)
        model = make_model("transformer", "pre-rms-relu", "scaled_dot", **{**off, setting: 0.5})
        batch = sentences.source, sentences.allowed, sentences.target
        calm = model(*batch)
        assert not torch.equal(model.train()(*batch), calm)
        for layer in (*model.encoder, *model.decoder):
            assert layer.self_attention.dropout == (0.5 if "attention" in setting else 0.0)
            assert layer.feedforward.dropout == (0.5 if "activation" in setting else 0.0)
            assert layer.self_residual.dropout == (0.5 if setting == "dropout" else 0.0)
        model = make_model("transformer", "pre-rms-relu", "scaled_dot", **off).train()
        assert torch.equal(model(*batch), model.eval()(*batch))


def test_one_may_go_on_from_a_state_again(make_model: Any, sentences: Any) -> None:
    model = make_model("transformer", "pre-rms-relu", "scaled_dot")
    state = model.start(model.encode(sentences.source, sentences.allowed))
    first, _ = model.step(sentences.target[:, :1], state)
    again, after = model.step(sentences.target[:, :1], state)
    assert torch.equal(first, again)
    one, _ = model.step(torch.full((3, 1), 11), after)
    model.step(torch.full((3, 1), 13), after)
    assert torch.equal(model.step(torch.full((3, 1), 11), after)[0], one)
