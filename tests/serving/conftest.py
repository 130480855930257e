"""A running service on a free port, and a model that does as it is told."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference.request import Request
from kakehashi.inference.save import save_bundle
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.serving.app import create_app
from kakehashi.serving.limits import Limits
from kakehashi.serving.schema import (
    Aligned,
    Answer,
    Bounds,
    Candidate,
    ModelAnswer,
    Scored,
    Translation,
    Word,
)
from kakehashi.serving.server import Server, bind
from kakehashi.serving.service import Service
from kakehashi.serving.tasks import Aligning, Scoring, Task, Text, Translating, strings
from kakehashi.serving.worker import Backend

FACTS = ModelAnswer(
    source_language="de",
    target_language="en",
    architecture="transformer",
    engine="torch",
    vocabulary=56,
    max_length=78,
    beam=5,
    length_penalty=1.0,
    kakehashi="0.0.0",
    limits=Bounds(
        body_bytes=5000,
        lines=9,
        characters=200,
        beam=8,
        work=12_800,
        attention=1_000,
        seconds=5.0,
    ),
    card="# A card\n\n<script>never()</script>\n",
)


@dataclass
class Reverser:
    """Writes every text backwards, once its gate is open."""

    gate: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    batches: list[tuple[Task, list[Text]]] = field(default_factory=list)
    broken: Exception | None = None
    """What a text of "!" raises."""

    def run(self, task: Task, texts: Sequence[Text]) -> list[Answer]:
        self.batches.append((task, list(texts)))
        self.begun.set()
        assert self.gate.wait(20)
        if self.broken is not None and Request("!") in texts:
            raise self.broken
        return [self._answer(task, text) for text in texts]

    def work(self, task: Task, texts: Sequence[Text]) -> list[int]:
        return [sum(map(len, strings(text))) + 1 for text in texts]

    def _answer(self, task: Task, text: Text) -> Answer:
        if isinstance(text, Request):
            assert isinstance(task, Translating)
            return self._translation(task, text.text)
        if isinstance(task, Scoring):
            scores = [-float(len(part)) for part in text]
            return Scored(
                log_probability=sum(scores),
                perplexity=1.0,
                tokens=list(text),
                token_log_probabilities=scores,
            )
        assert isinstance(task, Aligning)
        return Aligned(source_words=[text[0]], target_words=[text[1]], pairs=[(0, 0)])

    @staticmethod
    def _translation(task: Translating, text: str) -> Translation:
        words = text.split()
        count = len(words)
        chances = (0.9, 0.4, 0.1)
        found = [
            Word(text=word[::-1], probability=chances[n % 3], source=[n])
            for n, word in enumerate(words)
        ]
        target = " ".join(word.text for word in found)
        candidates = [
            Candidate(
                text=target if n == 0 else f"{target} {n}",
                score=-0.25 * (n + 1),
                log_probability=-0.5 * (n + 1),
                words=found if task.options.details else None,
            )
            for n in range(task.options.n_best)
        ]
        return Translation(
            text=target,
            score=-0.25,
            candidates=candidates,
            source_words=words if task.options.details else None,
            warnings=[f"it has {count} words"] if count > 6 else [],
        )


@dataclass(frozen=True)
class Served:
    """A service that runs."""

    port: int
    service: Service
    server: Server

    def ask(
        self, path: str, question: Any = None, headers: dict[str, str] | None = None
    ) -> "Reply":
        """GET, or POST of JSON (or of bytes, as they are)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        given = {"Content-Type": "application/json"} | (headers or {})
        if question is None:
            connection.request("GET", path, headers=headers or {})
        elif isinstance(question, bytes):
            connection.request("POST", path, question, given)
        else:
            connection.request("POST", path, json.dumps(question), given)
        response = connection.getresponse()
        reply = Reply(response.status, dict(response.getheaders()), response.read())
        connection.close()
        return reply

    def wait(self, true: Callable[[], bool]) -> None:
        """Until something is so."""
        end = time.monotonic() + 10
        while not true():
            assert time.monotonic() < end, "it never came to be"
            time.sleep(0.002)


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> str:
        """The sentence, and there is nothing else."""
        assert list(self.json) == ["error"]
        return str(self.json["error"])


Serve = Callable[..., Any]


@contextmanager
def running(
    backend: Backend,
    *,
    facts: ModelAnswer = FACTS,
    names: Sequence[str] = (),
    grace: float = 5,
    **limits: Any,
) -> Iterator[Served]:
    """A service with that model behind it."""
    with bind("127.0.0.1", 0) as listening, Service(backend, Limits(**limits)) as service:
        server = Server(create_app(service, facts, names), grace, service.give_up)
        thread = threading.Thread(target=server.run_on, args=[listening])
        thread.start()
        served = Served(listening.getsockname()[1], service, server)
        try:
            served.wait(lambda: server.started)
            yield served
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


@pytest.fixture(name="running")
def running_fixture() -> Serve:
    return running


@pytest.fixture
def reverser() -> Iterator[Reverser]:
    """With its gate open."""
    backend = Reverser()
    backend.gate.set()
    yield backend
    backend.gate.set()


@pytest.fixture
def small(reverser: Reverser) -> Iterator[Served]:
    """A service with small limits and an open gate."""
    with running(reverser, body=2000, lines=4, characters=50, queue=6, beam=4) as served:
        yield served


@pytest.fixture(scope="session")
def model_folder(small_corpus: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random Transformer, German to English."""
    torch.manual_seed(12)
    tokenizer = Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)
    model = build_model(
        TransformerConfig(
            encoder_layers=1, decoder_layers=1, d_model=24, d_feedforward=37, n_heads=3
        ),
        401,
    )
    model.output.restrict(torch.tensor([3, *tokenizer.ordinary_pieces()]))
    return save_bundle(
        tmp_path_factory.mktemp("served") / "model",
        model,
        tokenizer,
        source_language="de",
        target_language="en",
        max_length=53,
        decoding=DecodingConfig(beam=3, max_ratio=0.1, max_extra=4, batch_size=16),
        card="# card\n",
        metadata={},
    )
