"""The Transformer (Vaswani et al., 2017): two stacks of sublayers around one attention.

Shapes: B sentences, M source tokens, N target tokens, K hypotheses, H heads, D model width,
S pieces that a search asks for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from kakehashi.attention import Attention, Memory, Past, causal_mask, needed_mask, padding_mask
from kakehashi.layers.embedding import PositionalEmbedding
from kakehashi.layers.feedforward import FeedForward
from kakehashi.layers.projection import VocabularyProjection
from kakehashi.layers.residual import Residual, make_norm
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.config import TransformerConfig
from kakehashi.models.interface import (
    AttentionMaps,
    Encoded,
    Head,
    TranslationModel,
    alignment_layer,
    chosen_head,
    evaluating,
)

Joint = tuple[Tensor, Tensor | None]

MORE = 8
"""Pieces by which few translations are longer than their source: no room for more at first."""
MOST = 64
"""Steps there is room for at first: of long searches' hypotheses many have the same ancestors."""


@dataclass(frozen=True)
class TransformerState:
    """Between two steps: each layer's view of the source, and of the hypotheses' own past."""

    memories: list[Memory]
    """Rows are sentences."""
    past: Past
    position: int
    joints: list[Joint]
    """Each self-attention's projections, put together once for all steps."""
    output: tuple[Float[Tensor, "S D"], Float[Tensor, " S"] | None]
    """The projection to the pieces that are asked for."""


def _attention(config: TransformerConfig) -> Attention:
    head = config.d_model // config.n_heads
    return Attention(
        config.d_model,
        config.d_model,
        n_heads=config.n_heads,
        d_k=head,
        d_v=head,
        d_out=config.d_model,
        score=config.score.name,
        bias=config.bias,
        dropout=config.attention_dropout,
    )


def _residual(config: TransformerConfig) -> Residual:
    norm = make_norm(config.norm, config.d_model, config.bias)
    return Residual(norm, config.norm_position, config.dropout)


def _feedforward(config: TransformerConfig) -> FeedForward:
    return FeedForward(
        config.d_model,
        config.d_feedforward,
        config.activation,
        config.bias,
        config.activation_dropout,
    )


class EncoderLayer(nn.Module):
    """Self-attention over the source, then the feed-forward sublayer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = _attention(config)
        self.self_residual = _residual(config)
        self.feedforward = _feedforward(config)
        self.feedforward_residual = _residual(config)

    def forward(
        self,
        x: Float[Tensor, "B M D"],
        allowed: Bool[Tensor, "B 1 1 M"],
        return_weights: bool = False,
    ) -> tuple[Float[Tensor, "B M D"], Float[Tensor, "B H M M"] | None]:
        """The next annotations, and the self-attention weights if asked for."""
        query = self.self_residual.before(x)
        y, weights = self.self_attention.self_forward(query, allowed, return_weights)
        x = self.self_residual.after(x, y)
        y = self.feedforward(self.feedforward_residual.before(x))
        return self.feedforward_residual.after(x, y), weights


class DecoderLayer(nn.Module):
    """Self-attention over the past, cross-attention to the source, the feed-forward sublayer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = _attention(config)
        self.self_residual = _residual(config)
        self.cross_attention = _attention(config)
        self.cross_residual = _residual(config)
        self.feedforward = _feedforward(config)
        self.feedforward_residual = _residual(config)

    def forward(
        self,
        x: Float[Tensor, "B N D"],
        allowed: Bool[Tensor, "1 1 N N"],
        annotations: Float[Tensor, "B M D"],
        source_allowed: Bool[Tensor, "B 1 1 M"],
        return_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "B N D"], Float[Tensor, "B H N N"] | None, Float[Tensor, "B H N M"] | None
    ]:
        """All target positions at once; self- and cross-attention weights if asked for.

        All of the layer's weights are used in here and nowhere else: where they are sharded, they
        are whole for as long as this runs.
        """
        memory = self.cross_attention.memory(annotations, source_allowed)
        query = self.self_residual.before(x)
        y, self_weights = self.self_attention.self_forward(query, allowed, return_weights)
        x, cross_weights = self._rest(self.self_residual.after(x, y), memory, return_weights)
        return x, self_weights, cross_weights

    def step(
        self,
        x: Float[Tensor, "B K D"],
        layer: int,
        past: Past,
        memory: Memory,
        joint: Joint,
        return_weights: bool = False,
    ) -> tuple[Float[Tensor, "B K D"], Float[Tensor, "B H K M"] | None]:
        """One position of each of K hypotheses, in the decoder's ``layer``th layer.

        Also the cross-attention weights if asked for.
        """
        q, k, v = self.self_attention.project(self.self_residual.before(x), joint)
        y = self.self_attention.read(q, past.remember(layer, k, v))
        return self._rest(self.self_residual.after(x, y), memory, return_weights)

    def _rest(
        self, x: Tensor, memory: Memory, return_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        y, weights = self.cross_attention(self.cross_residual.before(x), memory, return_weights)
        x = self.cross_residual.after(x, y)
        y = self.feedforward(self.feedforward_residual.before(x))
        return self.feedforward_residual.after(x, y), weights


class Transformer(TranslationModel[TransformerState]):
    """Encoder and decoder stacks, sinusoidal positions, and a projection to the vocabulary."""

    def __init__(self, config: TransformerConfig, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = vocab_size
        self.alignment = AlignmentChoice(alignment_layer(config.decoder_layers) + 1)
        source = nn.Embedding(vocab_size, config.d_model)
        target = source if config.tie_embeddings else nn.Embedding(vocab_size, config.d_model)
        self.source_embedding = PositionalEmbedding(source, config.dropout)
        self.target_embedding = PositionalEmbedding(target, config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.encoder_norm = self._final_norm()
        self.decoder_norm = self._final_norm()
        self.output = VocabularyProjection(config.d_model, vocab_size)
        self._initialise()
        if config.tie_embeddings:
            self.output.weight = target.weight

    def _final_norm(self) -> nn.Module:
        """A pre-norm stack ends in an unnormalised stream, a post-norm one in a norm already."""
        config: TransformerConfig = self.config
        if config.norm_position == "post":
            return nn.Identity()
        return make_norm(config.norm, config.d_model, config.bias)

    def _initialise(self) -> None:
        """Matrices of variance 1 / inputs, zero biases, embeddings of unit norm.

        With pre-norm every sublayer starts by adding nothing (its last matrix is zero), so that the
        first updates shape an identity instead of undoing noise (Zhang et al., 2019, "Fixup").
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
        if self.config.norm_position == "pre":
            for name, parameter in self.named_parameters():
                if name.endswith(("attention.output.weight", "feedforward.outer.weight")):
                    nn.init.zeros_(parameter)

    def encode(self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"]) -> Encoded:
        """Annotate the source tokens; ``allowed`` is True on real tokens."""
        return self._encode(source, allowed, return_weights=False)[0]

    def _encode(
        self, source: Tensor, allowed: Tensor, return_weights: bool
    ) -> tuple[Encoded, list[Tensor]]:
        x = self.source_embedding(source)
        mask = padding_mask(allowed)
        maps = []
        for layer in self.encoder:
            x, weights = layer(x, mask, return_weights)
            if weights is not None:
                maps.append(weights)
        return Encoded(self.encoder_norm(x), allowed), maps

    def _memories(self, encoded: Encoded) -> list[Memory]:
        mask = needed_mask(encoded.allowed, encoded.annotations.dtype)
        attentions = [layer.cross_attention for layer in self._decoder_layers()]
        return [a.prepared(a.memory(encoded.annotations, mask)) for a in attentions]

    def _decoder_layers(self) -> Iterator[DecoderLayer]:
        for layer in self.decoder:
            assert isinstance(layer, DecoderLayer)
            yield layer

    def features(
        self,
        source: Int[Tensor, "B M"],
        allowed: Bool[Tensor, "B M"],
        target: Int[Tensor, "B N"],
    ) -> Float[Tensor, "B N D"]:
        """Decoder outputs before the vocabulary projection, given the whole target (from BOS)."""
        return self._decode(self.encode(source, allowed), target, return_weights=False)[0]

    def attending_features(
        self,
        source: Int[Tensor, "B M"],
        allowed: Bool[Tensor, "B M"],
        target: Int[Tensor, "B N"],
    ) -> tuple[Float[Tensor, "B N D"], list[Float[Tensor, "B H N M"]]]:
        """``features``, and each decoder layer's cross-attention weights, with gradients."""
        encoded = self.encode(source, allowed)
        features, _, cross = self._decode(encoded, target, return_weights=True)
        return features, cross

    def _decode(
        self, encoded: Encoded, target: Tensor, return_weights: bool
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        x = self.target_embedding(target)
        mask = causal_mask(target.shape[1], target.device)
        source = encoded.annotations, padding_mask(encoded.allowed)
        self_maps, cross_maps = [], []
        for layer in self.decoder:
            x, self_weights, cross_weights = layer(x, mask, *source, return_weights)
            if return_weights:
                self_maps.append(self_weights)
                cross_maps.append(cross_weights)
        return self.decoder_norm(x), self_maps, cross_maps

    def start(
        self, encoded: Encoded, hypotheses: int = 1, pieces: Int[Tensor, " S"] | None = None
    ) -> TransformerState:
        """State before the first step, with ``hypotheses`` equal rows for each sentence."""
        del hypotheses  # nothing has been said yet: the past takes its rows from the first step
        joints = [layer.self_attention.joint() for layer in self._decoder_layers()]
        return TransformerState(
            self._memories(encoded),
            Past.empty(len(self.decoder), steps=min(encoded.allowed.shape[1] + MORE, MOST)),
            position=0,
            joints=joints,
            output=self.output.of(pieces),
        )

    def step(
        self, tokens: Int[Tensor, "B K"], state: TransformerState
    ) -> tuple[Float[Tensor, "B K S"], TransformerState]:
        """Feed each hypothesis its last token; logits of the next one, and the state after it."""
        return self._step(tokens, state, attending=None)[:2]

    def attending_step(
        self, tokens: Int[Tensor, "B K"], state: TransformerState
    ) -> tuple[Float[Tensor, "B K S"], TransformerState, Float[Tensor, "B K M"]]:
        """``step``, and the cross-attention that ``alignment`` names."""
        logits, state, weights = self._step(tokens, state, attending=self.alignment.layer - 1)
        assert weights is not None
        return logits, state, chosen_head(weights, self.alignment)

    def _step(
        self, tokens: Tensor, state: TransformerState, attending: int | None
    ) -> tuple[Tensor, TransformerState, Tensor | None]:
        """A step, and the cross-attention weights of layer ``attending``."""
        past = state.past.extend(tokens.shape[0], tokens.shape[1], tokens.device)
        x = self.target_embedding.at(tokens, state.position)
        wanted = None
        for number, layer in enumerate(self._decoder_layers()):
            memory, joint, asked = state.memories[number], state.joints[number], number == attending
            x, weights = layer.step(x, number, past, memory, joint, return_weights=asked)
            if asked:
                wanted = weights
        logits = F.linear(self.decoder_norm(x), *state.output)
        return logits, replace(state, past=past, position=state.position + 1), wanted

    def select(
        self,
        state: TransformerState,
        rows: Int[Tensor, "b k"],
        sentences: Int[Tensor, " b"] | None = None,
    ) -> TransformerState:
        """Rearrange the hypotheses' pasts; the source side only if sentences are dropped."""
        memories = state.memories
        if sentences is not None:
            memories = [memory.select(sentences) for memory in memories]
        return replace(state, memories=memories, past=state.past.select(rows, sentences))

    def attention_maps(
        self,
        source: Int[Tensor, "B M"],
        allowed: Bool[Tensor, "B M"],
        target: Int[Tensor, "B N"],
    ) -> AttentionMaps:
        """Every attention distribution of the teacher-forced pass (no dropout, no gradient)."""
        with evaluating(self):
            encoded, encoder_maps = self._encode(source, allowed, return_weights=True)
            _, decoder_maps, cross_maps = self._decode(encoded, target, return_weights=True)
        return AttentionMaps(cross_maps, encoder_maps, decoder_maps)

    def heads(self) -> list[Head]:
        """Of the encoder's layers, then of each decoder layer those of both attentions."""
        found = []
        for number, layer in enumerate(self.encoder):
            assert isinstance(layer, EncoderLayer)
            found += _heads("encoder", number, layer.self_attention)
        for number, layer in enumerate(self._decoder_layers()):
            found += _heads("decoder", number, layer.self_attention)
            found += _heads("cross", number, layer.cross_attention)
        return found


def _heads(name: str, layer: int, attention: Attention) -> list[Head]:
    """W^O takes the heads' contexts side by side."""
    output = attention.output
    assert output is not None
    width = output.in_features // attention.n_heads
    return [
        Head(name, layer, head, ((output, slice(head * width, (head + 1) * width)),))
        for head in range(attention.n_heads)
    ]
