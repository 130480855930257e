"""A Transformer as a folder for `transformers`: MarianMT for post-norm, Pegasus for pre-norm.

Both are the plain Transformer with half-split sinusoids from position 0, scaled embeddings, biases
everywhere and a constant offset of the logits. (M2M100, the pre-norm model better known in
translation, counts positions from 1 and spaces its frequencies by d/2 - 1 instead of d/2; it makes
that table itself when it is loaded, so no weights make it the model that was trained.)

Their layer norms add 1e-5 to the variance, ours 1e-6. A stream that is sqrt(10) times as large has
ten times the variance, and with it 1e-5 is what 1e-6 was: so everything that is added to a stream
is written sqrt(10) times as large, and the norms take that out again.
"""

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor, nn

from kakehashi.attention import Attention
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import ConfigError
from kakehashi.inference.ctranslate2_engine import most_pieces
from kakehashi.inference.export.folding import scaled_dot_query, transformer, zeros_for
from kakehashi.inference.settings import BundleConfig
from kakehashi.layers.embedding import sinusoids
from kakehashi.layers.feedforward import FeedForward
from kakehashi.layers.residual import Residual
from kakehashi.models.config import TransformerConfig
from kakehashi.models.interface import TranslationModel
from kakehashi.models.transformer import DecoderLayer, EncoderLayer, Transformer
from kakehashi.symbols import BOS, EOS, PAD

POSITIONS = 2048
"""Pieces of the longest sequence, EOS counted: the table of sinusoids stands in the file."""
STREAM = 10.0**0.5
"""How much larger a stream is written, for the layer norms' 1e-5."""


def write_huggingface(
    folder: Path, model: TranslationModel[Any], tokenizer: Tokenizer, config: BundleConfig
) -> None:
    """Write weights, configuration and tokenizer into a folder that exists.

    Raises:
        ConfigError: for a model that neither MarianMT nor Pegasus can compute.
    """
    source = transformer(model, "transformers")
    _check(source.config)
    post = source.config.norm_position == "post"
    tensors = _Marian(source).tensors() if post else _Pegasus(source).tensors()
    weights = safetensors.torch.save(
        {name: tensor.contiguous().clone() for name, tensor in tensors.items()},
        metadata={"format": "pt"},
    )
    (folder / "model.safetensors").write_bytes(weights)
    _write_json(folder / "config.json", _config(source))
    _write_json(folder / "generation_config.json", _generation(config))
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(tokenizer.to_bytes())
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    _write_json(folder / "vocab.json", {piece: i for i, piece in enumerate(pieces)})
    _write_json(folder / "tokenizer_config.json", _tokenizer_config())


def _check(config: TransformerConfig) -> None:
    if config.norm != "layer":
        raise ConfigError(
            "the model normalises by the root mean square (model.norm=rms); no pre-norm or "
            "post-norm translation model of transformers does: export it --to ctranslate2"
        )
    if config.activation == "swiglu":
        raise ConfigError(
            "the model's feed-forward sublayers are gated (model.activation=swiglu); MarianMT and "
            "Pegasus have none: export it --to ctranslate2"
        )


class _Writer(ABC):
    """The tensors of either model by the names of transformers; they share nearly all of them."""

    def __init__(self, source: Transformer) -> None:
        self.source = source
        self.found: dict[str, Tensor] = {}

    def tensors(self) -> dict[str, Tensor]:
        source = self.source
        self._embeddings()
        for side, layers in (("encoder", source.encoder), ("decoder", source.decoder)):
            last = len(layers) - 1
            for number, layer in enumerate(layers):
                assert isinstance(layer, EncoderLayer | DecoderLayer)
                self._layer(f"model.{side}.layers.{number}", layer, number == last)
        self._final_norms()
        self.found["final_logits_bias"] = source.output.silence.unsqueeze(0)
        return self.found

    def _embeddings(self) -> None:
        source, found = self.source, self.found
        table = STREAM * sinusoids(POSITIONS, source.config.d_model)
        for side in ("encoder", "decoder"):
            found[f"model.{side}.embed_positions.weight"] = table
        own = STREAM * source.source_embedding.table.weight.detach()
        if source.config.tie_embeddings or source.config.norm_position == "pre":
            found["model.shared.weight"] = own  # Pegasus has one even where nobody shares it
        if not source.config.tie_embeddings:
            target = STREAM * source.target_embedding.table.weight.detach()
            found["model.encoder.embed_tokens.weight"] = own
            found["model.decoder.embed_tokens.weight"] = target
            found["lm_head.weight"] = STREAM * source.output.weight.detach()

    @abstractmethod
    def _layer(self, name: str, layer: EncoderLayer | DecoderLayer, last: bool) -> None:
        """The tensors of one layer; ``last`` of its stack."""

    @abstractmethod
    def _final_norms(self) -> None:
        """The tensors of the norms that stand after the stacks."""

    def _attention(self, name: str, attention: Attention, reads: float, memory: float) -> None:
        """The query's input is ``reads`` times as large as it was, the memory ``memory`` times."""
        assert attention.value is not None and attention.output is not None
        weight, bias = scaled_dot_query(attention)
        self._linear(
            f"{name}.q_proj", weight / reads, zeros_for(attention.query) if bias is None else bias
        )
        for part, linear in (("k_proj", attention.key), ("v_proj", attention.value)):
            self._linear(f"{name}.{part}", linear.weight / memory, zeros_for(linear))
        out = attention.output
        self._linear(f"{name}.out_proj", STREAM * out.weight, STREAM * zeros_for(out))

    def _feedforward(self, name: str, feedforward: FeedForward, reads: float) -> None:
        inner, outer = feedforward.inner, feedforward.outer
        self._linear(f"{name}.fc1", inner.weight / reads, zeros_for(inner))
        self._linear(f"{name}.fc2", STREAM * outer.weight, STREAM * zeros_for(outer))

    def _linear(self, name: str, weight: Tensor, bias: Tensor) -> None:
        self.found[f"{name}.weight"] = weight.detach()
        self.found[f"{name}.bias"] = bias.detach()

    def _norm(self, name: str, norm: nn.Module, scale: float) -> None:
        """A layer norm, or the one of a residual, whose result is ``scale`` times as large."""
        if isinstance(norm, Residual):
            norm = norm.norm
        assert isinstance(norm, nn.LayerNorm)
        self._linear(name, scale * norm.weight, scale * zeros_for(norm))


class _Pegasus(_Writer):
    """Pre-norm: what the sublayers read has been normalised, so they read it as it was."""

    def _layer(self, name: str, layer: EncoderLayer | DecoderLayer, last: bool) -> None:
        self._norm(f"{name}.self_attn_layer_norm", layer.self_residual, 1.0)
        self._attention(f"{name}.self_attn", layer.self_attention, 1.0, 1.0)
        if isinstance(layer, DecoderLayer):
            self._norm(f"{name}.encoder_attn_layer_norm", layer.cross_residual, 1.0)
            self._attention(f"{name}.encoder_attn", layer.cross_attention, 1.0, 1.0)
        self._norm(f"{name}.final_layer_norm", layer.feedforward_residual, 1.0)
        self._feedforward(name, layer.feedforward, 1.0)

    def _final_norms(self) -> None:
        self._norm("model.encoder.layer_norm", self.source.encoder_norm, 1.0)
        # The vocabulary's matrix is as much larger as the embeddings, with which it may be shared.
        self._norm("model.decoder.layer_norm", self.source.decoder_norm, 1.0 / STREAM)


class _Marian(_Writer):
    """Post-norm: every norm writes the stream itself, and every sublayer reads it."""

    def _final_norms(self) -> None:
        """Nothing after a post-norm stack."""

    def _layer(self, name: str, layer: EncoderLayer | DecoderLayer, last: bool) -> None:
        self._attention(f"{name}.self_attn", layer.self_attention, STREAM, STREAM)
        self._norm(f"{name}.self_attn_layer_norm", layer.self_residual, STREAM)
        end = 1.0
        if isinstance(layer, DecoderLayer):
            self._attention(f"{name}.encoder_attn", layer.cross_attention, STREAM, 1.0)
            self._norm(f"{name}.encoder_attn_layer_norm", layer.cross_residual, STREAM)
            end = 1.0 / STREAM
        self._feedforward(name, layer.feedforward, STREAM)
        self._norm(f"{name}.final_layer_norm", layer.feedforward_residual, end if last else STREAM)


def _config(model: Transformer) -> dict[str, Any]:
    config = model.config
    post = config.norm_position == "post"
    return {
        "architectures": ["MarianMTModel" if post else "PegasusForConditionalGeneration"],
        "model_type": "marian" if post else "pegasus",
        "is_encoder_decoder": True,
        "vocab_size": model.vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.n_heads,
        "decoder_attention_heads": config.n_heads,
        "encoder_ffn_dim": config.d_feedforward,
        "decoder_ffn_dim": config.d_feedforward,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "scale_embedding": True,
        "tie_word_embeddings": config.tie_embeddings,
        **({"share_encoder_decoder_embeddings": config.tie_embeddings} if post else {}),
        "max_position_embeddings": POSITIONS,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
        "dtype": "float32",
    }


def _generation(config: BundleConfig) -> dict[str, Any]:
    decoding = config.decoding
    longest = most_pieces(config.max_length, decoding)
    return {
        "num_beams": decoding.beam,
        "length_penalty": decoding.length_penalty,
        "early_stopping": True,
        "max_length": min(longest + 1, POSITIONS),
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
    }


def _tokenizer_config() -> dict[str, Any]:
    return {
        "tokenizer_class": "MarianTokenizer",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "model_max_length": POSITIONS,
        "separate_vocabs": False,
        # `</s>` written in a text is text.
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
    }


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
