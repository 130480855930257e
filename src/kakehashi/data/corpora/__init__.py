"""Where pairs come from: the embedded corpus, a user's files, a hub of data sets."""

from kakehashi.data.config import DataConfig
from kakehashi.data.corpora.base import Corpus
from kakehashi.data.notes import note

__all__ = ["Corpus", "load_corpus"]


def load_corpus(config: DataConfig) -> Corpus:
    """The corpus that `config` describes, fetched if need be, checked and split.

    Raises DataError (CorpusError where it can't be had), with what to do.
    """
    corpus = _load(config)
    for total in corpus.ledger.totals():
        note(f"{config.name}, {total}")
    return corpus


def _load(config: DataConfig) -> Corpus:
    match config.kind:
        case "tatoeba":
            from kakehashi.data.corpora.tatoeba import load_tatoeba

            return load_tatoeba(config)
        case "files" | "mixture":
            from kakehashi.data.corpora.files import load_files

            return load_files(config)
        case "hub" if config.streaming:
            from kakehashi.data.corpora.streamed import load_streamed

            return load_streamed(config)
        case _:
            from kakehashi.data.corpora.hub import load_hub

            return load_hub(config)
