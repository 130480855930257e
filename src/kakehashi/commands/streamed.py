"""What a run says of its training pairs, which may be a stream that nobody has seen whole."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kakehashi.training.fitted import Fitted

if TYPE_CHECKING:
    from kakehashi.commands.run import Run


def described(run: "Run") -> str:
    """What is known of a stream, and from how much of it; nothing for other corpora."""
    stream = run.corpus.stream
    if stream is None:
        return ""
    return (
        f"read as it was needed, in blocks of {stream.buffer:,} pairs; tokenizer, report of "
        f"normalisation, counts of translations and held-out splits come from {stream.sample:,} "
        "pairs of it"
    )


def epochs(run: "Run", fitted: Fitted) -> str:
    """How often the run went through its training pairs."""
    if run.data.seen is not None and not fitted.epochs:
        return "less than one epoch"
    return f"{fitted.epochs:.1f} epochs"


def trained_on(run: "Run", fitted: Fitted) -> str:
    """How many pairs, and how often."""
    if run.data.seen is not None:
        return f"{run.data.seen.pairs:,} pairs of a stream ({epochs(run, fitted)})"
    return f"{epochs(run, fitted)} of {run.data.n_training_pairs:,} pairs"


def held_out(run: "Run", splits: Sequence[str]) -> list[str]:
    """How many of the pairs read went to these splits."""
    if run.data.seen is None:
        return [f"{len(getattr(run.corpus, name)):,} held out for {name}" for name in splits]
    # the first pass through a stream may end before it has come to all of them
    return [f"{run.data.seen.counts.held_out:,} held out for {' and '.join(splits)}"][: len(splits)]


def ledger_files(run: "Run") -> str:
    """Where the ledger stands."""
    trainer = run.config.trainer
    if run.corpus.stream is None or trainer.devices * trainer.num_nodes == 1:
        return "ledger.jsonl"
    return "ledger.jsonl, ledger-1.jsonl and so on, a file for each process"
