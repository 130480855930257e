"""The package's own exceptions: what the command line prints without a traceback."""

import signal


class KakehashiError(Exception):
    """Something the person at the keyboard can put right; the message says how."""


class ConfigError(KakehashiError):
    """A setting that is unknown, of the wrong type, or at odds with another one."""


class DataError(KakehashiError):
    """Text that cannot be read or paired: names the file, the line and the counts."""


class CorpusError(DataError):
    """A corpus that cannot be had: no network, wrong hash, unknown language pair."""


class TokenizerError(KakehashiError):
    """A tokenizer that cannot be trained on this text or loaded from this file."""


class BundleError(KakehashiError):
    """A model folder that is missing, incomplete, damaged or of another kind."""


class EvaluationError(KakehashiError):
    """Hypotheses and references that cannot be scored against each other."""


class ExportError(KakehashiError):
    """A model in another format that does not do what the original does."""


class TrainingError(KakehashiError):
    """A run that cannot start or go on."""


class Stopped(Exception):  # noqa: N818  nothing went wrong
    """A run was asked to stop by a signal; its state is on disk as far as that could be."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        """Of the signal."""
