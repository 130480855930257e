"""How a request is turned away: a status, and one sentence that says why."""

from collections.abc import Mapping


class Refusal(Exception):  # noqa: N818  nothing went wrong here
    """There is no result; the client is told why."""

    def __init__(
        self,
        status: int,
        cause: str,
        sentence: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.cause = cause
        """One word for the metrics."""
        self.sentence = sentence
        self.headers = dict(headers or {})
