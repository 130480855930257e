"""Which of a run's checkpoints are meant: the newest, or the best by validation BLEU."""

import re
from pathlib import Path

from kakehashi.commands.compare import read_summary
from kakehashi.errors import TrainingError
from kakehashi.training.snapshot import open_snapshot

_AT_UPDATE = re.compile(r"update-(\d+)\.ckpt")


def last_checkpoints(run: Path, number: int) -> list[Path]:
    """The newest so many of a run, oldest first.

    Raises:
        TrainingError: when the run has kept fewer.
    """
    return _enough(run, "--last", number, _by_update(run))


def best_checkpoints(run: Path, number: int) -> list[Path]:
    """The so many with the highest validation BLEU of those that a run has kept, oldest first.

    Of equal ones the newer. The scores are those that the run measured, in its summary.json.

    Raises:
        TrainingError: when the run has kept fewer, or has not measured one of them.
        EvaluationError: when there is no whole summary.json.
    """
    kept, best = _by_update(run), run / "checkpoints" / "best.ckpt"
    if best.is_file():
        kept.setdefault(open_snapshot(best).update, best)
    bleu = {point["update"]: point["bleu"] for point in read_summary(run)["training"]["points"]}
    for update, path in kept.items():
        if update not in bleu:
            raise TrainingError(
                f"{run / 'summary.json'} has no validation BLEU of update {update:,}, at which "
                f"{path} was written: the two are of different runs"
            )
    ranked = sorted(kept, key=lambda update: (bleu[update], update))[-number:]
    _enough(run, "--best", number, kept)
    return [kept[update] for update in sorted(ranked)]


def _by_update(run: Path) -> dict[int, Path]:
    """The checkpoints of validations, by the update at which they were written."""
    names = [(path, _AT_UPDATE.fullmatch(path.name)) for path in (run / "checkpoints").glob("*")]
    return {int(found[1]): path for path, found in names if found}


def _enough(run: Path, option: str, number: int, kept: dict[int, Path]) -> list[Path]:
    if len(kept) < number:
        updates = ", ".join(f"{update:,}" for update in sorted(kept))
        raise TrainingError(
            f"{run / 'checkpoints'} holds {len(kept)} checkpoint{'' if len(kept) == 1 else 's'}"
            + (f" (of updates {updates})" if kept else "")
            + f" and {option} asks for {number}; a run keeps more with callbacks.keep={number}"
        )
    return [kept[update] for update in sorted(kept)[-number:]]
