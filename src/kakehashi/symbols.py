"""The four reserved vocabulary entries, the same in every tokenizer and model of the project."""

from typing import Final

PAD: Final = 0
"""Fills the rows of a batch up to the longest; never attended to, never predicted."""
UNK: Final = 1
"""A piece outside the vocabulary; with byte fallback it does not occur."""
BOS: Final = 2
"""Starts every target sequence: the decoder's first input."""
EOS: Final = 3
"""Ends every source and target sequence."""
