"""What a viewer shows of one sentence and one model: pieces, weights, candidates, the beam.

Shapes: H heads of each layer, M source pieces, EOS included, and d pieces that a step has read,
BOS included.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp

import torch
from jaxtyping import Float
from torch import Tensor

from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.search import search
from kakehashi.errors import ConfigError
from kakehashi.inference.engine import Row
from kakehashi.inference.torch_engine import TorchEngine, source_tensors
from kakehashi.inference.translator import Translator
from kakehashi.insight.attention import check_line
from kakehashi.insight.explorer.labels import Label, direction, labels
from kakehashi.insight.explorer.recording import Alive, Recorded
from kakehashi.models.interface import AttentionMaps
from kakehashi.symbols import BOS, EOS

CANDIDATES = 5
"""Pieces shown of those that a step could have written."""
_NAMES = {"transformer": "Transformer", "rnn": "RNN"}


@dataclass(frozen=True)
class Step:
    """One step of the decoder, which a prefix of a translation decides.

    Translations that begin alike share their steps.
    """

    cross: list[Float[Tensor, "H M"]]
    """Where it looks in the source, layer by layer."""
    decoder: list[Float[Tensor, "H d"]]
    """Where it looks in what is written: BOS, and the pieces up to the one that it reads."""
    candidates: tuple[tuple[Label, float], ...]
    """The likeliest next pieces with their probabilities, likeliest first."""


@dataclass(frozen=True)
class Path:
    """A translation, step by step."""

    text: str
    steps: tuple[int, ...]
    """Numbers of its steps, one for each piece that it writes."""
    output: tuple[Label, ...]
    """What they write: the pieces, EOS last; or a mark where the length limit cut it."""
    probabilities: tuple[float, ...]
    """Of what they write after what was written before; of EOS where it was cut."""
    log_probability: float
    score: float | None
    """What the search ranks by; None for a translation that was given."""
    finished: bool
    """False where the length limit cut it."""


@dataclass(frozen=True)
class Slot:
    """A hypothesis of the beam after a step."""

    label: Label
    """The piece that it wrote last."""
    parent: int
    """Its place in the beam before."""
    log_probability: float
    step: int | None
    """The step that goes on from it, where one of the paths does."""


@dataclass(frozen=True)
class Scene:
    """A sentence as a model reads and translates it."""

    model: str
    """Its name for people."""
    source_language: str
    target_language: str
    line: str
    source: tuple[Label, ...]
    """Pieces of the line, EOS last."""
    encoder: list[Float[Tensor, "H M M"]]
    """Self-attention of the encoder, layer by layer; none where the model has none."""
    steps: tuple[Step, ...]
    paths: tuple[Path, ...]
    """Best first."""
    beam: tuple[tuple[Slot, ...], ...]
    """The hypotheses that go on after each step; empty for a translation that was given."""
    layer: int
    """Of the cross-attention, from 0: what is shown first."""
    head: int | None
    """From 0; None is the mean of all."""


def scene(
    translator: Translator,
    line: str,
    target: str | None = None,
    *,
    beam: int | None = None,
    name: str | None = None,
) -> Scene:
    """How a model attends while it translates a line, in all that its beam search ends with.

    Args:
        translator: the model, on the torch engine.
        line: source text, one sentence.
        target: the translation to follow; None: the model's own.
        beam: hypotheses of the search; None: as the model says.
        name: what to call the model; None: Transformer or RNN.

    Raises:
        ConfigError: for another engine, which keeps its weights to itself.
        DataError: for a line without visible characters, and one that is longer than the model's
            training (translated in parts, see ``Translator``).
    """
    engine, tokenizer, config = translator.engine, translator.tokenizer, translator.config
    if not isinstance(engine, TorchEngine):
        raise ConfigError(f"the {engine.name} engine does not show how it attends; torch does")
    row = tokenizer.encode(line)
    check_line(translator, line, target)
    if target is None:
        found, alive = _searched(engine, row, translator, beam)
    else:
        found, alive = [Hypothesis(tuple(tokenizer.encode(target)), 0.0, 0.0, True)], []
    followed = _Followed(engine, translator, row)
    paths = [followed.path(hypothesis, given=target is not None) for hypothesis in found]
    choice = engine.model.alignment
    return Scene(
        model=_NAMES.get(config.model.name, config.model.name) if name is None else name,
        source_language=config.source_language,
        target_language=config.target_language,
        line=line,
        source=tuple(labels(tokenizer, [*row, EOS])),
        encoder=[weights[0].float().cpu() for weights in followed.first.encoder],
        steps=tuple(followed.steps),
        paths=tuple(paths),
        beam=tuple(tuple(followed.slot(slot) for slot in slots) for slots in alive),
        layer=choice.layer - 1,
        head=None if choice.head is None else choice.head - 1,
    )


def _searched(
    engine: TorchEngine, row: Row, translator: Translator, beam: int | None
) -> tuple[list[Hypothesis], list[list[Alive]]]:
    config = translator.config.decoding
    if beam is not None:
        config = replace(config, beam=beam)
    recorded = Recorded(engine.model).eval()
    with torch.inference_mode():
        encoded = recorded.encode(*source_tensors([row], engine.device))
        found = search(recorded, encoded, config=config, n_best=config.beam)
    return found[0], recorded.beam


class _Followed:
    """The steps of one sentence's translations, each once."""

    def __init__(self, engine: TorchEngine, translator: Translator, row: Row) -> None:
        self._engine, self._tokenizer, self._row = engine, translator.tokenizer, row
        self._numbers: dict[tuple[int, ...], int] = {}
        self.steps: list[Step] = []
        self.first: AttentionMaps
        """Of the first translation."""

    def path(self, hypothesis: Hypothesis, *, given: bool) -> Path:
        """Follow a translation."""
        ids = hypothesis.ids
        maps = self._engine.maps(self._row, ids)
        if not self.steps:
            self.first = maps
        log_softmax = self._log_softmax(ids)
        likeliest = log_softmax.topk(min(CANDIDATES, log_softmax.shape[1]), dim=-1)
        numbers = []
        for n in range(len(ids) + 1):
            number = self._numbers.setdefault(ids[:n], len(self.steps))
            numbers.append(number)
            if number == len(self.steps):
                self.steps.append(self._step(maps, n, likeliest.indices[n], likeliest.values[n]))
        output = [*ids, EOS]
        shown = labels(self._tokenizer, output)
        if not hypothesis.finished:
            shown[-1] = Label("cut", control=True)
        own = log_softmax.gather(1, torch.tensor(output).unsqueeze(1))[:, 0].tolist()
        return Path(
            text=" ".join(self._tokenizer.decode(ids).splitlines()),
            steps=tuple(numbers),
            output=tuple(shown),
            probabilities=tuple(exp(min(0.0, one)) for one in own),
            log_probability=sum(own) if given else hypothesis.log_probability,
            score=None if given else hypothesis.score,
            finished=hypothesis.finished,
        )

    def slot(self, alive: Alive) -> Slot:
        """A hypothesis of the beam as it is shown."""
        label = labels(self._tokenizer, alive.ids)[-1]
        step = self._numbers.get(alive.ids)
        return Slot(label, alive.parent, alive.log_probability, step)

    def _log_softmax(self, ids: Sequence[int]) -> Float[Tensor, "N V"]:
        source, allowed = source_tensors([self._row], self._engine.device)
        target = torch.tensor([[BOS, *ids]], device=self._engine.device)
        with torch.inference_mode():
            logits: Tensor = self._engine.model(source, allowed, target)
            return logits[0].log_softmax(-1, dtype=torch.float32).cpu()

    def _step(self, maps: AttentionMaps, n: int, tokens: Tensor, values: Tensor) -> Step:
        likely = zip(tokens.tolist(), values.exp().tolist(), strict=True)
        return Step(
            cross=[weights[0, :, n].float().cpu() for weights in maps.cross],
            decoder=[weights[0, :, n, : n + 1].float().cpu() for weights in maps.decoder],
            candidates=tuple(
                (labels(self._tokenizer, [token])[0], probability) for token, probability in likely
            ),
        )


def directions(shown: Scene) -> tuple[str, list[str]]:
    """The directions of the line, and of each translation."""
    return direction(shown.line), [direction(path.text) for path in shown.paths]
