"""Which pieces of a translation stand for which pieces of its source, read off the attention.

Shapes: M source pieces, N target pieces, EOS not counted.
"""

import numpy as np
import numpy.typing as npt

Pairs = tuple[tuple[int, int], ...]
"""Places (source, target), from 0, in order of the target."""


def piece_alignment(attention: npt.NDArray[np.float32]) -> Pairs:
    """The source piece that each target piece looks at most.

    Read at the step whose *input* is the target piece, one after the step that writes it: there
    the decoder knows the word and its attention has settled on it (Chen et al., 2020, "Accurate
    Word Alignment Induction from Neural Machine Translation"). EOS on the source's side, where
    weight gathers that belongs nowhere, is left out.

    Args:
        attention: [N + 1, M + 1], see ``Followed.attention``.
    """
    if attention.shape[1] < 2:
        return ()
    return tuple((int(row[:-1].argmax()), at) for at, row in enumerate(attention[1:]))
