"""What a service accepts, and how it shares its time."""

from dataclasses import dataclass

from kakehashi.errors import ConfigError


@dataclass(frozen=True)
class Limits:
    """Bounds of one service; whatever is over one of them is refused, never cut."""

    body: int = 1 << 20
    """Bytes of a request's body."""
    lines: int = 128
    """Texts, or pairs of them, in one request."""
    characters: int = 2_000
    """Of one text."""
    beam: int = 8
    """Hypotheses that a request may ask for: time and memory grow with them."""
    work: int = 12_800
    """Of one text, see ``Backend.work``."""
    attention: int = 1_000
    """The same of a text that is looked at: its answer has every weight, and grows with the square
    of the pieces and with the hypotheses. 100 pieces with a beam of 5 came to 1.4 MB with 3 + 2
    layers of 4 heads."""
    queue: int = 1_024
    """Sentences that wait; a request for which there is no room is refused at once."""
    seconds: float = 30.0
    """From the arrival of a request to its answer."""
    together: int = 64
    """Sentences that the model is given together; 1 turns batching off."""
    padded: int = 64 * 200
    """Work that it is given together, each sentence counted as much as the one with most: so much
    takes a second or two, and nobody who waits or leaves is held up by more."""
    gather: float = 0.003
    """Seconds that an idle worker waits for more sentences to come with the first."""

    def __post_init__(self) -> None:
        if self.queue < self.lines:
            raise ConfigError(
                f"a queue of {self.queue:,} sentences has no room for a request of "
                f"{self.lines:,} lines: give a longer --queue or fewer --max-lines"
            )
