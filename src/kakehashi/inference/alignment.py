"""Which pieces, and which words, of a translation stand for which of its source.

Read off the attention. Words are what white space divides, counted from 0. Shapes: M source pieces,
N target pieces, EOS not counted.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Pairs = tuple[tuple[int, int], ...]
"""Places (source, target), from 0, in order of the target."""


def piece_alignment(attention: npt.NDArray[np.float32]) -> Pairs:
    """The source piece that each target piece looks at most.

    EOS on the source's side, where weight gathers that belongs nowhere, is left out: the most
    weight among the pieces that are left is what counts, so nothing has to be scaled up again.

    Args:
        attention: [N + 1, M + 1], see ``Followed.attention``.
    """
    if attention.shape[1] < 2:
        return ()
    return tuple((int(row[:-1].argmax()), at) for at, row in enumerate(attention[:-1]))


def shifted(steps: npt.NDArray[np.float32], shift: int) -> npt.NDArray[np.float32]:
    """The row of each target piece, from those of a decoder's steps.

    Step n writes piece n, and reads piece n - 1 (step 0: BOS). Which of the two steps that know a
    piece looks more at where it comes from is a matter of the model: Chen et al. (2020), "Accurate
    Word Alignment Induction from Neural Machine Translation", found the one that reads it better
    in deep Transformers.

    Args:
        steps: [N + 1, M + 1], the last one writes EOS.
        shift: 0: the step that writes the piece; 1: the one that reads it. No step reads EOS; its
            row stays the one that writes it.
    """
    return np.concatenate([steps[shift:], steps[len(steps) - shift :]])


def word_alignment(
    pairs: Iterable[tuple[int, int]],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
) -> Pairs:
    """The words of which some pieces are aligned: a union, so a word may have several or none.

    Args:
        pairs: of pieces.
        sources: the words that each source piece is in, see ``inference.line_words``.
        targets: the words that each target piece is in.
    """
    found = {(i, j) for source, target in pairs for i in sources[source] for j in targets[target]}
    return tuple(sorted(found, key=lambda pair: (pair[1], pair[0])))


def pharaoh(pairs: Pairs) -> str:
    """Pairs as aligners write them: ``0-0 1-2``."""
    return " ".join(f"{i}-{j}" for i, j in pairs)
