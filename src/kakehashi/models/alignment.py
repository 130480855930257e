"""Which of a decoder's attentions is read as a word alignment."""

from dataclasses import dataclass

from kakehashi.errors import ConfigError


@dataclass(frozen=True)
class AlignmentChoice:
    """A layer, a head, and the step at which they are read; numbers from 1, as people count.

    Raises:
        ConfigError: for a layer or a head below 1, and another shift than 0 and 1.
    """

    layer: int = 1
    """Of the decoder."""
    head: int | None = None
    """None: the mean of all."""
    shift: int = 0
    """0: where a target piece comes from is read at the step that writes it; 1: at the step after
    it, whose input it is."""

    def __post_init__(self) -> None:
        for name, value in (("layer", self.layer), ("head", self.head)):
            if value is not None and value < 1:
                raise ConfigError(f"the alignment's {name} is {value}; they count from 1")
        if self.shift not in (0, 1):
            raise ConfigError(
                f"the alignment's shift is {self.shift}; it is 0 (a piece's row is the step that "
                "writes it) or 1 (the step whose input it is)"
            )

    def __str__(self) -> str:
        head = "mean of its heads" if self.head is None else f"head {self.head}"
        return f"layer {self.layer}, {head}, shift {self.shift}"

    def check(self, layers: int, heads: int) -> None:
        """Raises ConfigError where a decoder of so many layers and heads has no such one."""
        if self.layer > layers:
            raise ConfigError(
                f"the model has decoder layers 1 to {layers}; there is no {self.layer}"
            )
        if self.head is not None and self.head > heads:
            raise ConfigError(f"layer {self.layer} has heads 1 to {heads}; there is no {self.head}")
