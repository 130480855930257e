"""RNNsearch against Bahdanau et al. (2015), written plainly: one sentence, word by word."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from kakehashi.models.config import RNNConfig, ScoreConfig
from kakehashi.models.rnn import RNNSearch

V = 29
SCORES = ("dot", "scaled_dot", "general", "additive")


def sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x))


class Plain:
    """The paper's equations for one sentence, over a model's named parameters.

    Two departures, both said in the model's docstrings: the reset gate is applied after the
    recurrent matrix, and word vectors are scaled by the square root of their width.
    """

    def __init__(self, model: RNNSearch) -> None:
        self.p: dict[str, Tensor] = dict(model.state_dict())
        self.config: RNNConfig = model.config

    def word(self, side: str, token: int) -> Tensor:
        return self.p[f"{side}_table.weight"][token] * math.sqrt(self.config.d_embedding)

    def gru(self, gates: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
        """A state update from the input's and the former state's parts for r, z and n."""
        n = self.config.d_hidden
        r = sigmoid(gates[:n] + recurrent[:n])
        z = sigmoid(gates[n : 2 * n] + recurrent[n : 2 * n])
        proposal = torch.tanh(gates[2 * n :] + r * recurrent[2 * n :])
        return (1 - z) * proposal + z * state

    def encode(self, source: list[int]) -> list[Tensor]:
        """h_j = [forward; backward], each direction one loop over the words (A.2.1)."""
        states: dict[str, list[Tensor]] = {"": [], "_reverse": []}
        for direction, order in (("", 1), ("_reverse", -1)):
            weight_ih, weight_hh, bias_ih, bias_hh = (
                self.p[f"encoder.{part}_l0{direction}"]
                for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            state = torch.zeros(self.config.d_hidden).double()
            for token in source[::order]:
                gates = weight_ih @ self.word("source", token) + bias_ih
                state = self.gru(gates, weight_hh @ state + bias_hh, state)
                states[direction].append(state)
        backward = states["_reverse"][::-1]
        return [torch.cat(pair) for pair in zip(states[""], backward, strict=True)]

    def energy(self, state: Tensor, annotation: Tensor) -> Tensor:
        """e_ij = a(s_{i-1}, h_j); the additive one is the paper's (A.1.2)."""
        q = self.p["attention.query.weight"] @ state
        k = self.p["attention.key.weight"] @ annotation
        match self.config.score.name:
            case "dot":
                return q @ k
            case "scaled_dot":
                return q @ k / math.sqrt(self.config.d_attention)
            case "general":
                return k @ self.p["attention.score.weight"][0] @ q
        return self.p["attention.score.weight"][0] @ torch.tanh(q + k)

    def run(self, source: list[int], target: list[int]) -> tuple[Tensor, Tensor]:
        """Logits [N V] and alignment weights [N M]."""
        annotations = self.encode(source)
        backward = annotations[0][self.config.d_hidden :]
        state = torch.tanh(self.p["initial.weight"] @ backward + self.p["initial.bias"])
        logits, alignments = [], []
        for token in target:
            word = self.word("target", token)
            energies = [torch.exp(self.energy(state, h)) for h in annotations]
            alpha = [e / sum(energies) for e in energies]  # (6)
            context = torch.stack([a * h for a, h in zip(alpha, annotations, strict=True)]).sum(0)
            gates = self.p["word_gates.weight"] @ word + self.p["word_gates.bias"]
            gates = gates + self.p["context_gates.weight"] @ context
            recurrent = self.p["cell.recurrent.weight"] @ state + self.p["cell.recurrent.bias"]
            state = self.gru(gates, recurrent, state)
            read = self.p["readout.weight"] @ torch.cat([state, word, context])
            read = read + self.p["readout.bias"]
            units = len(read) // 2
            largest = [torch.maximum(read[j], read[units + j]) for j in range(units)]
            logits.append(self.p["output.weight"] @ torch.stack(largest))
            alignments.append(torch.stack(alpha))
        return torch.stack(logits), torch.stack(alignments)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("variant", ["tied", "untied"])
@torch.no_grad()
def test_a_padded_batch_equals_the_paper_word_by_word(
    variant: str, score: str, make_model: Any, sentences: Any
) -> None:
    model = make_model("rnn", variant, score)
    logits = model(sentences.source, sentences.allowed, sentences.target)
    maps = model.attention_maps(sentences.source, sentences.allowed, sentences.target)
    assert maps.encoder == maps.decoder == []
    (cross,) = maps.cross
    for b, length in enumerate(sentences.allowed.sum(-1).tolist()):
        expected, alignment = Plain(model).run(
            sentences.source[b, :length].tolist(), sentences.target[b].tolist()
        )
        torch.testing.assert_close(logits[b], expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(cross[b, 0, :, :length], alignment, rtol=0, atol=1e-12)
        assert not cross[b, 0, :, length:].any()


def test_annotations_are_projected_once_to_keys_and_to_all_that_reads_a_context(
    make_model: Any, sentences: Any
) -> None:
    model = make_model("rnn", "tied", "additive")
    assert model.attention.value is None
    assert model.attention.output is None
    encoded = model.encode(sentences.source, sentences.allowed)
    memory = model.start(encoded, 5).memory
    own = model.config.d_hidden + model.config.d_embedding
    gates = model.context_gates(encoded.annotations)
    read = encoded.annotations @ model.readout.weight[:, own:].T
    expected = torch.cat([gates, read], dim=-1)
    torch.testing.assert_close(memory.value[:, 0], expected, rtol=0, atol=1e-12)
    expected = encoded.annotations @ model.attention.key.weight.T
    torch.testing.assert_close(memory.key[:, 0].log() / 2, expected, rtol=0, atol=1e-12)


def test_padding_has_no_annotation(make_model: Any, sentences: Any) -> None:
    model = make_model("rnn", "tied", "additive")
    encoded = model.encode(sentences.source, sentences.allowed)
    assert not encoded.annotations[~sentences.allowed].any()
    assert encoded.annotations[sentences.allowed].any(-1).all()


def number_of_parameters(c: RNNConfig, vocab_size: int) -> int:
    """Counted by hand, in the paper's letters."""
    m, n, a, maxout = c.d_embedding, c.d_hidden, c.d_attention, c.d_maxout
    words = vocab_size * m if c.tie_embeddings else vocab_size * (2 * m + maxout)
    encoder = 2 * (3 * n * m + 3 * n * n + 2 * 3 * n)
    initial = n * n + n
    score = {"dot": 0, "scaled_dot": 0, "general": a * a, "additive": a}[c.score.name]
    attention = a * n + a * 2 * n + score
    decoder = 3 * n * m + 3 * n + 3 * n * 2 * n + 3 * n * n + 3 * n
    readout = 2 * maxout * (n + m + 2 * n) + 2 * maxout
    return words + encoder + initial + attention + decoder + readout


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("d_maxout", "tie_embeddings"), [(11, True), (11, False), (5, False)])
def test_number_of_parameters(score: str, d_maxout: int, tie_embeddings: bool) -> None:
    config = RNNConfig(
        d_embedding=11,
        d_hidden=13,
        d_attention=7,
        d_maxout=d_maxout,
        tie_embeddings=tie_embeddings,
        score=ScoreConfig(score),
    )
    model = RNNSearch(config, V)
    assert sum(p.numel() for p in model.parameters()) == number_of_parameters(config, V)


def test_tied_embeddings_are_one_tensor(make_model: Any) -> None:
    model = make_model("rnn", "tied", "additive").float()
    tables = [model.source_table.weight, model.target_table.weight, model.output.weight]
    assert len({id(table) for table in tables}) == 1
    untied = make_model("rnn", "untied", "additive")
    tables = [untied.source_table.weight, untied.target_table.weight, untied.output.weight]
    assert len({table.data_ptr() for table in tables}) == 3


def test_recurrent_matrices_start_orthogonal_and_word_vectors_at_unit_norm() -> None:
    model = RNNSearch(RNNConfig(d_embedding=128, d_maxout=128, d_hidden=13), 997)
    matrices = [
        model.encoder.weight_hh_l0,
        model.encoder.weight_hh_l0_reverse,
        model.cell.recurrent.weight,
    ]
    for matrix in matrices:
        assert isinstance(matrix, Tensor)
        for block in matrix.split(13):
            torch.testing.assert_close(block @ block.T, torch.eye(13), rtol=0, atol=1e-5)
    assert model.source_table.weight.norm(dim=1).mean().item() == pytest.approx(1.0, rel=0.02)
