"""RNNsearch (Bahdanau, Cho and Bengio, 2015): translation that learns to align.

Equation numbers are the paper's. Shapes: B sentences, M source tokens, N target tokens,
K hypotheses, S pieces that a search asks for, n hidden units, A = 2n width of an annotation.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from kakehashi.attention import Attention, Memory, needed_mask, padding_mask
from kakehashi.attention.dropout import check_probability
from kakehashi.attention.dropout import dropout as drop
from kakehashi.layers.projection import VocabularyProjection
from kakehashi.layers.recurrent import GRUCell, maxout
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.config import RNNConfig
from kakehashi.models.interface import AttentionMaps, Encoded, Head, TranslationModel, evaluating


@dataclass(frozen=True)
class RNNState:
    """Between two steps: the source, and each s_i."""

    memory: Memory
    """Rows are sentences; values are what the gates and the readout take from each annotation."""
    hidden: Float[Tensor, "B K n"]
    output: tuple[Float[Tensor, "S D"], Float[Tensor, " S"] | None]
    """The projection to the pieces that are asked for."""


class RNNSearch(TranslationModel[RNNState]):
    """Bidirectional GRU encoder, and a GRU decoder that attends to it at every step.

    The decoder's attention is cross-attention with one query, the previous state s_{i-1}; the
    annotations themselves are the values (W^V and W^O are identities), and their keys U_a h_j are
    projected once a source.
    """

    def __init__(self, config: RNNConfig, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = vocab_size
        self.alignment = AlignmentChoice()
        n, m, annotation = config.d_hidden, config.d_embedding, 2 * config.d_hidden
        self.source_table = nn.Embedding(vocab_size, m)
        self.target_table = self.source_table
        if not config.tie_embeddings:
            self.target_table = nn.Embedding(vocab_size, m)
        self.encoder = nn.GRU(m, n, batch_first=True, bidirectional=True)
        self.initial = nn.Linear(n, n)
        self.attention = Attention(
            n,
            annotation,
            n_heads=1,
            d_k=config.d_attention,
            d_v=None,
            d_out=None,
            score=config.score.name,
        )
        self.word_gates = nn.Linear(m, 3 * n)
        self.context_gates = nn.Linear(annotation, 3 * n, bias=False)
        self.cell = GRUCell(n)
        self.readout = nn.Linear(n + m + annotation, 2 * config.d_maxout)
        self.dropout = check_probability(config.dropout)
        self.output = VocabularyProjection(config.d_maxout, vocab_size)
        self._initialise()
        if config.tie_embeddings:
            self.output.weight = self.target_table.weight

    def _initialise(self) -> None:
        """Glorot for input matrices, orthogonal recurrent ones, unit-norm word vectors."""
        for name, parameter in self.named_parameters():
            if name.startswith(("cell.", "attention.score.")):
                continue
            if parameter.dim() < 2:
                nn.init.zeros_(parameter)
            elif "weight_hh" in name:
                for block in parameter.data.split(self.config.d_hidden):
                    nn.init.orthogonal_(block)
            elif "table" in name:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
            else:
                nn.init.xavier_uniform_(parameter)

    def _embed(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        # Scaled as in the Transformer: the table doubles as the output projection, where unit
        # norm is right, while a recurrent layer wants inputs of unit variance.
        embedded = F.embedding(tokens, table.weight) * math.sqrt(table.embedding_dim)
        return drop(embedded, self.dropout, self.training)

    def encode(self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"]) -> Encoded:
        """h_j = [forward state; backward state] (section 3.2); ``allowed`` is True on tokens."""
        lengths = allowed.sum(-1).cpu()
        packed = pack_padded_sequence(
            self._embed(self.source_table, source), lengths, batch_first=True, enforce_sorted=False
        )
        annotations, _ = pad_packed_sequence(
            self.encoder(packed)[0], batch_first=True, total_length=source.shape[1]
        )
        return Encoded(drop(annotations, self.dropout, self.training), allowed)

    def _start(self, encoded: Encoded, mask: Tensor | None) -> tuple[Memory, Tensor]:
        """The memory, and s_0 = tanh(W_s h_1) from the backward state at the first word (A.2.2)."""
        memory = self.attention.memory(encoded.annotations, mask)
        backward = encoded.annotations[:, 0, self.config.d_hidden :]
        return memory, torch.tanh(self.initial(backward))

    def features(
        self,
        source: Int[Tensor, "B M"],
        allowed: Bool[Tensor, "B M"],
        target: Int[Tensor, "B N"],
    ) -> Float[Tensor, "B N D"]:
        """Readouts before the vocabulary projection, given the whole target (from BOS)."""
        return self._decode(self.encode(source, allowed), target, return_weights=False)[0]

    def attending_features(
        self,
        source: Int[Tensor, "B M"],
        allowed: Bool[Tensor, "B M"],
        target: Int[Tensor, "B N"],
    ) -> tuple[Float[Tensor, "B N D"], list[Float[Tensor, "B H N M"]]]:
        """``features``, and the alignment weights, with gradients."""
        return self._decode(self.encode(source, allowed), target, return_weights=True)

    def _decode(
        self, encoded: Encoded, target: Tensor, return_weights: bool
    ) -> tuple[Tensor, list[Tensor]]:
        memory, hidden = self._start(encoded, padding_mask(encoded.allowed))
        hidden = hidden.unsqueeze(1)
        words = self._embed(self.target_table, target)
        states, contexts, maps = [], [], []
        for gates in self.word_gates(words).split(1, dim=1):
            hidden, context, weights = self._advance(gates, hidden, memory, return_weights)
            states.append(hidden)
            contexts.append(context)
            if weights is not None:
                maps.append(weights)
        features = self._read(torch.cat(states, 1), words, torch.cat(contexts, 1))
        return features, [torch.cat(maps, 2)] if maps else []

    def _advance(
        self, word_gates: Tensor, hidden: Tensor, memory: Memory, return_weights: bool = False
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """One step of each of K rows: c_i from s_{i-1} (5, 6), then s_i = f(s_{i-1}, y, c_i)."""
        context, weights = self.attention(hidden, memory, return_weights)
        return self.cell(word_gates + self.context_gates(context), hidden), context, weights

    def _read(self, hidden: Tensor, words: Tensor, context: Tensor) -> Tensor:
        """t_i = maxout(U_o s_i + V_o E y_{i-1} + C_o c_i).

        With s_i as in equation (4); the appendix prints s_{i-1}.
        """
        read = maxout(self.readout(torch.cat([hidden, words, context], -1)))
        return drop(read, self.dropout, self.training)

    def _readout_parts(self) -> tuple[Tensor, Tensor]:
        """The readout's weight: [U_o V_o], and C_o."""
        own = self.config.d_hidden + self.config.d_embedding
        return self.readout.weight[:, :own], self.readout.weight[:, own:]

    def start(
        self, encoded: Encoded, hypotheses: int = 1, pieces: Int[Tensor, " S"] | None = None
    ) -> RNNState:
        """State before the first step, with ``hypotheses`` equal rows for each sentence."""
        memory, hidden = self._start(
            encoded, needed_mask(encoded.allowed, encoded.annotations.dtype)
        )
        # The context is a mixture, and all that reads it is linear: so annotations are multiplied
        # once, before they are mixed, and no context at any step.
        uses = torch.cat([self.context_gates.weight, self._readout_parts()[1]])
        value = F.linear(encoded.annotations, uses).unsqueeze(1)
        memory = replace(self.attention.prepared(memory), value=value)
        hidden = hidden.unsqueeze(1).expand(-1, hypotheses, -1)
        return RNNState(memory, hidden, self.output.of(pieces))

    def step(
        self, tokens: Int[Tensor, "B K"], state: RNNState
    ) -> tuple[Float[Tensor, "B K S"], RNNState]:
        """Feed each hypothesis its last token; logits of the next one, and the state after it."""
        return self._step(tokens, state, return_weights=False)[:2]

    def attending_step(
        self, tokens: Int[Tensor, "B K"], state: RNNState
    ) -> tuple[Float[Tensor, "B K S"], RNNState, Float[Tensor, "B K M"]]:
        """``step``, and the alignment weights [B K M] that it read the source with."""
        logits, state, weights = self._step(tokens, state, return_weights=True)
        assert weights is not None
        return logits, state, weights[:, 0]

    def _step(
        self, tokens: Tensor, state: RNNState, return_weights: bool
    ) -> tuple[Tensor, RNNState, Tensor | None]:
        words = self._embed(self.target_table, tokens)
        used, weights = self.attention(state.hidden, state.memory, return_weights)
        gates, read = used.split([3 * self.config.d_hidden, 2 * self.config.d_maxout], dim=-1)
        hidden = self.cell(self.word_gates(words) + gates, state.hidden)
        own = F.linear(torch.cat([hidden, words], -1), self._readout_parts()[0], self.readout.bias)
        read = drop(maxout(own + read), self.dropout, self.training)
        logits = F.linear(read, *state.output)
        return logits, replace(state, hidden=hidden), weights

    def select(
        self,
        state: RNNState,
        rows: Int[Tensor, "b k"],
        sentences: Int[Tensor, " b"] | None = None,
    ) -> RNNState:
        """Rearrange the hypotheses' states; the source side only if sentences are dropped."""
        memory = state.memory if sentences is None else state.memory.select(sentences)
        hidden = state.hidden.flatten(0, 1).index_select(0, rows.flatten())
        return replace(state, memory=memory, hidden=hidden.view(*rows.shape, -1))

    def attention_maps(
        self,
        source: Int[Tensor, "B M"],
        allowed: Bool[Tensor, "B M"],
        target: Int[Tensor, "B N"],
    ) -> AttentionMaps:
        """The alignment weights of the teacher-forced pass: one layer, one head, cross only."""
        with evaluating(self):
            encoded = self.encode(source, allowed)
            return AttentionMaps(self._decode(encoded, target, return_weights=True)[1])

    def heads(self) -> list[Head]:
        """The one there is; the gates take its context (5), and so does the readout (4)."""
        gates, readout = self.context_gates, self.readout
        last = slice(readout.in_features - gates.in_features, readout.in_features)
        return [Head("cross", 0, 0, ((gates, slice(0, gates.in_features)), (readout, last)))]
