"""What a service counts, for Prometheus: numbers only, nothing of any text."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one service."""

    def __init__(self, queue_length: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self.requests = Counter(
            "kakehashi_requests",
            "Requests answered, refused ones too.",
            ["path", "status"],
            registry=self._registry,
        )
        self.errors = Counter(
            "kakehashi_errors",
            "Requests without a result, by cause.",
            ["cause"],
            registry=self._registry,
        )
        self.seconds = Histogram(
            "kakehashi_request_seconds",
            "From the head of a request to the end of its answer.",
            ["path"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.sentences = Counter(
            "kakehashi_sentences",
            "Sentences accepted, by task.",
            ["task"],
            registry=self._registry,
        )
        self.batches = Histogram(
            "kakehashi_batch_sentences",
            "Sentences that went through the model together.",
            buckets=_SENTENCES,
            registry=self._registry,
        )
        Gauge(
            "kakehashi_queue_sentences", "Sentences that wait.", registry=self._registry
        ).set_function(queue_length)

    def text(self) -> bytes:
        """All of them in Prometheus' text form."""
        return generate_latest(self._registry)
