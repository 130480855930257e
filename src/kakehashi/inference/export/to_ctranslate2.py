"""A Transformer as a CTranslate2 model: the same numbers under other names.

CTranslate2 reads `model.bin` (its own format: names, shapes, numbers), `config.json` and the
vocabulary. Projections of the same input stand in one matrix there: queries, keys and values of
self-attention, keys and values of cross-attention.
"""

from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kakehashi.attention import Attention
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.inference.export.folding import (
    bias_of,
    head_first,
    scaled_dot_query,
    transformer,
    zeros_for,
)
from kakehashi.inference.packages import ctranslate2
from kakehashi.layers.embedding import sinusoids
from kakehashi.layers.feedforward import FeedForward
from kakehashi.layers.residual import EPSILON, Residual
from kakehashi.models.interface import TranslationModel
from kakehashi.models.transformer import DecoderLayer, EncoderLayer

POSITIONS = 4096
"""Pieces of the longest sequence, EOS counted: CTranslate2 looks positions up in a table."""


def write_ctranslate2(
    folder: Path,
    model: TranslationModel[Any],
    tokenizer: Tokenizer,
    *,
    quantization: str,
    positions: int = POSITIONS,
) -> None:
    """Write ``model.bin``, ``config.json`` and ``shared_vocabulary.json`` into a folder.

    Args:
        folder: where to; it exists.
        model: a Transformer in float32 on the CPU, with any score but the additive one.
        tokenizer: its pieces.
        quantization: float32, or int8: matrices as bytes with a scale for each row.
        positions: length of the table of sinusoids.

    Raises:
        ConfigError: for a model that CTranslate2 cannot compute, or where it is not installed.
    """
    source = deepcopy(transformer(model, "CTranslate2"))  # weights are quantised in their place
    config = source.config
    specs = ctranslate2().specs
    common = {
        "pre_norm": config.norm_position == "pre",
        "activation": {
            "relu": specs.Activation.RELU,
            "gelu": specs.Activation.GELU,
            "swiglu": specs.Activation.SWISH,
        }[config.activation],
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.norm == "rms",
    }
    # What it returns as attention: the mean of the first heads of a layer. A head that was chosen
    # is made the first.
    choice = source.alignment
    if choice.head is not None:
        aligning = source.decoder[choice.layer - 1]
        assert isinstance(aligning, DecoderLayer)
        head_first(aligning.cross_attention, choice.head - 1)
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.encoder_layers, config.n_heads, **common),
        specs.TransformerDecoderSpec(
            config.decoder_layers,
            config.n_heads,
            alignment_layer=choice.layer - 1,
            alignment_heads=config.n_heads if choice.head is None else 1,
            **common,
        ),
    )
    table = sinusoids(positions, config.d_model)
    for part, embedding in (
        (spec.encoder, source.source_embedding),
        (spec.decoder, source.target_embedding),
    ):
        part.position_encodings.encodings = table
        written = part.embeddings[0] if part is spec.encoder else part.embeddings
        written.weight = embedding.table.weight.detach()
        written.multiply_by_sqrt_depth = True
    for written, encoder_layer in zip(spec.encoder.layer, source.encoder, strict=True):
        assert isinstance(encoder_layer, EncoderLayer)
        _self_attention(written, encoder_layer)
    for written, decoder_layer in zip(spec.decoder.layer, source.decoder, strict=True):
        assert isinstance(decoder_layer, DecoderLayer)
        _self_attention(written, decoder_layer)
        _cross_attention(written, decoder_layer)
    if common["pre_norm"]:
        _norm(spec.encoder.layer_norm, source.encoder_norm)
        _norm(spec.decoder.layer_norm, source.decoder_norm)
    spec.decoder.projection.weight = source.output.weight.detach()
    spec.decoder.projection.bias = source.output.silence
    _vocabulary(spec, tokenizer)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def _vocabulary(spec: Any, tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.add_source_bos = False
    spec.config.add_source_eos = False
    spec.config.layer_norm_epsilon = EPSILON


def _self_attention(written: Any, layer: EncoderLayer | DecoderLayer) -> None:
    attention = layer.self_attention
    assert attention.value is not None
    _norm(written.self_attention.layer_norm, layer.self_residual)
    _joined(written.self_attention.linear[0], attention, ("query", "key", "value"))
    _output(written.self_attention.linear[1], attention)
    _feedforward(written.ffn, layer.feedforward, layer.feedforward_residual)


def _cross_attention(written: Any, layer: DecoderLayer) -> None:
    attention = layer.cross_attention
    _norm(written.attention.layer_norm, layer.cross_residual)
    _joined(written.attention.linear[0], attention, ("query",))
    _joined(written.attention.linear[1], attention, ("key", "value"))
    _output(written.attention.linear[2], attention)


def _joined(written: Any, attention: Attention, names: tuple[str, ...]) -> None:
    """Some of W^Q, W^K, W^V as one linear."""
    weights, biases = [], []
    for name in names:
        linear = getattr(attention, name)
        weight, bias = linear.weight.detach(), bias_of(linear)
        if name == "query":
            weight, bias = scaled_dot_query(attention)
        weights.append(weight)
        biases.append(bias)
    written.weight = torch.cat(weights)
    if len(given := [bias for bias in biases if bias is not None]) == len(names):
        written.bias = torch.cat(given)


def _output(written: Any, attention: Attention) -> None:
    assert attention.output is not None
    _set(written, attention.output)


def _feedforward(written: Any, feedforward: FeedForward, residual: Residual) -> None:
    _norm(written.layer_norm, residual)
    _set(written.linear_0, feedforward.inner)
    if feedforward.gate is not None:
        _set(written.linear_0_noact, feedforward.gate)
    _set(written.linear_1, feedforward.outer)


def _norm(written: Any, norm: nn.Module) -> None:
    """A layer norm without a bias has a bias of zeros in CTranslate2."""
    if isinstance(norm, Residual):
        norm = norm.norm
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    written.gamma = norm.weight.detach()
    if isinstance(norm, nn.LayerNorm):
        written.beta = zeros_for(norm)


def _set(written: Any, linear: nn.Linear) -> None:
    written.weight = linear.weight.detach()
    if (bias := bias_of(linear)) is not None:
        written.bias = bias
