"""Word alignments of a training text, as the links of pieces that a head learns from."""

from pathlib import Path

import numpy as np

from kakehashi.data.corpora.base import Corpus
from kakehashi.data.reading import read_lines
from kakehashi.data.tokenizer import Span, Tokenizer
from kakehashi.errors import ConfigError, DataError
from kakehashi.evaluation.links import pharaoh_links
from kakehashi.inference.line_words import line_words, piece_words
from kakehashi.training.alignment_head import PieceLinks

Words = list[list[int]]
"""Of each word of a line, the places of the pieces that it is spelt with."""


def given_links(path: Path, corpus: Corpus, tokenizer: Tokenizer) -> PieceLinks:
    """The links of the pieces of every training pair: all of one word with all of the other.

    Args:
        path: a line of pairs ``i-j`` of words for each line that the training files have, one file
            after the other where there are several; those of lines that take no part are not used.
        corpus: whose training pairs are meant.
        tokenizer: of the run.

    Raises:
        ConfigError: for a corpus whose lines are not those of files, or were changed in reading.
        DataError: for another number of lines, and a link of a word that a line does not have.
    """
    kinds = {"a stream": corpus.stream is not None, "no file of lines": _numbered(corpus)}
    if wrong := [what for what, is_so in kinds.items() if is_so]:
        raise ConfigError(
            f"objective.alignments={path}: the training text is {wrong[0]}, so that nobody can say "
            "which line of the alignments belongs to which pair; use data=files or data=mixture"
        )
    links = pharaoh_links(read_lines(path), str(path))
    if len(links) != corpus.read["train"]:
        raise DataError(
            f"{path} has {len(links):,} lines and the training text {corpus.train.origin} has "
            f"{corpus.read['train']:,}: line k of one must align line k of the other"
        )
    train, counts, ends = corpus.train, [0], list[tuple[int, int]]()
    for at in range(len(train)):
        source, target = _words(tokenizer, train.source[at]), _words(tokenizer, train.target[at])
        line = int(train.lines[at])
        found = links[line - 1]
        for i, j in sorted(found):
            if i >= len(source) or j >= len(target):
                raise DataError(
                    f"{path}, line {line}: {i}-{j} is no link of {len(source)} words and "
                    f"{len(target)}, counted from 0"
                )
            ends += [(m, n) for m in source[i] for n in target[j]]
        counts.append(len(ends))
    places = np.array(ends, dtype=np.int32).reshape(-1, 2)
    return PieceLinks(np.array(counts, dtype=np.int64), places[:, 0], places[:, 1])


def _numbered(corpus: Corpus) -> bool:
    """Whether the pairs are numbered otherwise than by lines."""
    return int(max(corpus.train.lines)) > corpus.read["train"]


def _words(tokenizer: Tokenizer, text: str) -> Words:
    spans: list[Span] = tokenizer.encode_spans(text)
    words: Words = [[] for _ in text.split()]
    pieces = tokenizer.pieces(tokenizer.encode(text))
    for place, held in enumerate(piece_words(pieces, spans, line_words(text))):
        for word in held:
            words[word].append(place)
    return words
