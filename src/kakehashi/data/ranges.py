"""Many stretches of one flat array at once."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def places_of(starts: Ints, lengths: Ints) -> Ints:
    """The places start, ..., start + length - 1 of each stretch, one stretch after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
