"""A model that says what a script says, and tiny real ones, to hold the searches against."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.models.interface import AttentionMaps, Encoded, TranslationModel

Prefix = tuple[int, ...]
Script = Callable[[int, Prefix], Sequence[float]]
"""Logits of the next piece, given the sentence's first source piece and what was said (no BOS)."""


@dataclass
class ScriptState:
    sentences: list[int]
    said: list[list[Prefix]]


@dataclass
class Journal:
    """How a search used the model."""

    rows: list[tuple[int, int]] = field(default_factory=list)
    """B and K of each step."""
    moved: list[bool] = field(default_factory=list)
    """For each rearrangement, whether sentences were dropped (and the source side touched)."""


class ScriptedModel(TranslationModel[ScriptState]):
    def __init__(self, script: Script, vocab_size: int) -> None:
        super().__init__()
        self.script, self.vocab_size, self.config = script, vocab_size, None
        self.output = nn.Linear(1, vocab_size)
        self.journal = Journal()
        self.places = 2

    def encode(self, source: Tensor, allowed: Tensor) -> Encoded:
        self.places = source.shape[1]
        return Encoded(source.float().unsqueeze(-1), allowed)

    def features(self, source: Tensor, allowed: Tensor, target: Tensor) -> Tensor:
        raise NotImplementedError

    def attending_features(
        self, source: Tensor, allowed: Tensor, target: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        raise NotImplementedError

    def spoken(self) -> None:
        """All pieces."""

    def start(
        self, encoded: Encoded, hypotheses: int = 1, pieces: Tensor | None = None
    ) -> ScriptState:
        assert pieces is None
        first = encoded.annotations[:, 0, 0].int().tolist()
        return ScriptState(first, [[() for _ in range(hypotheses)] for _ in first])

    def step(self, tokens: Tensor, state: ScriptState) -> tuple[Tensor, ScriptState]:
        self.journal.rows.append((tokens.shape[0], tokens.shape[1]))
        rows = list(zip(state.sentences, state.said, tokens.tolist(), strict=True))
        said = [[(*p, t) for p, t in zip(ps, ts, strict=True)] for _, ps, ts in rows]
        logits = [
            [list(self.script(s, p[1:])) for p in ps]
            for s, ps in zip(state.sentences, said, strict=True)
        ]
        return torch.tensor(logits), ScriptState(state.sentences, said)

    def attending_step(
        self, tokens: Tensor, state: ScriptState
    ) -> tuple[Tensor, ScriptState, Tensor]:
        logits, state = self.step(tokens, state)
        return logits, state, self.attention(state)

    def attention(self, state: ScriptState) -> Tensor:
        """Each hypothesis looks at the source place that its last piece names, with weight 3/4."""
        places = self.places
        rows = [[torch.full((places,), 0.25 / (places - 1)) for _ in said] for said in state.said]
        for row, said in zip(rows, state.said, strict=True):
            for weights, prefix in zip(row, said, strict=True):
                weights[prefix[-1] % places] = 0.75
        return torch.stack([torch.stack(row) for row in rows])

    def select(
        self, state: ScriptState, rows: Tensor, sentences: Tensor | None = None
    ) -> ScriptState:
        self.journal.moved.append(sentences is not None)
        flat = [prefix for prefixes in state.said for prefix in prefixes]
        kept = range(len(state.sentences)) if sentences is None else sentences.tolist()
        said = [[flat[row] for row in line] for line in rows.tolist()]
        return ScriptState([state.sentences[i] for i in kept], said)

    def attention_maps(self, source: Tensor, allowed: Tensor, target: Tensor) -> AttentionMaps:
        raise NotImplementedError


def random_script(seed: int, vocab_size: int, sharpness: float = 2.0) -> Script:
    """Random logits, a fixed function of (seed, sentence, prefix)."""
    table: dict[tuple[int, Prefix], list[float]] = {}

    def script(sentence: int, prefix: Prefix) -> list[float]:
        key = (sentence, prefix)
        if key not in table:
            generator = torch.Generator().manual_seed(hash((seed, *key)) % 2**63)
            table[key] = (sharpness * torch.randn(vocab_size, generator=generator)).tolist()
        return table[key]

    return script


@pytest.fixture
def scripted() -> Callable[..., ScriptedModel]:
    """Make a model from a script, or from a seed for a random one."""

    def make(script: Script | int, vocab_size: int) -> ScriptedModel:
        if isinstance(script, int):
            script = random_script(script, vocab_size)
        return ScriptedModel(script, vocab_size).eval()

    return make


REAL = {
    "transformer": TransformerConfig(
        encoder_layers=1,
        decoder_layers=2,
        d_model=24,
        d_feedforward=37,
        n_heads=3,
        tie_embeddings=False,
    ),
    "rnn": RNNConfig(
        d_embedding=13, d_hidden=17, d_attention=11, d_maxout=19, tie_embeddings=False
    ),
}


@pytest.fixture(params=REAL)
def real(request: pytest.FixtureRequest) -> TranslationModel[Any]:
    """A small random model of each kind, wide awake: untied and with large weights.

    (A tied random model only repeats its last piece.) ``model.output.silence[EOS]`` makes the end
    of a translation more or less likely.
    """
    torch.manual_seed(1)
    model = build_model(REAL[request.param], vocab_size=29)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2.0)
        model.output.weight *= 4 / model.output.weight.norm(dim=1, keepdim=True)
    return model.eval()


@pytest.fixture
def sentences() -> tuple[Tensor, Tensor]:
    """Seven padded source sentences of 2 to 11 pieces, EOS included, and what is not padding."""
    lengths = torch.tensor([5, 11, 2, 7, 3, 11, 6])
    source = torch.randint(4, 29, (7, 11), generator=torch.Generator().manual_seed(5))
    allowed = torch.arange(11) < lengths.unsqueeze(1)
    source[~allowed] = 0
    source[torch.arange(7), lengths - 1] = 3
    return source, allowed
