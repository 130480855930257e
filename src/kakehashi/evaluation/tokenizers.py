"""How BLEU finds words: sacreBLEU's tokenizer for a target language, and what to say about it."""

import re

from sacrebleu.metrics.bleu import BLEU

from kakehashi.errors import EvaluationError

_LANGUAGES = {
    "zh": ("zh", "zho", "chi", "cmn", "yue"),
    "ja": ("ja", "jpn"),
    "ko": ("ko", "kor"),
    # written without spaces between words, and without a tokenizer in sacreBLEU
    "unspaced": ("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur"),
}
_KIND = {code: kind for kind, codes in _LANGUAGES.items() for code in codes}
_MECAB = {"ja": "ja-mecab", "ko": "ko-mecab"}


def bleu_tokenizer(language: str) -> tuple[str, tuple[str, ...]]:
    """The sacreBLEU tokenizer for a target language, and what to tell about the choice.

    zh for Chinese; MeCab for Japanese and Korean where it is installed and characters otherwise
    (then the note says so); characters for Thai, Lao, Khmer and Burmese, with a note; 13a for
    every other language.

    Args:
        language: a code such as ``zh``, ``zho``, ``zh-Hant`` or ``zh_CN``.
    """
    code = re.split(r"[-_]", language.lower())[0]
    kind = _KIND.get(code, code)
    if kind == "zh":
        return "zh", ()
    if kind == "unspaced":
        return "char", (f"BLEU counts characters: {language} has no spaces between words",)
    if kind not in _MECAB:
        return "13a", ()
    if not _installed(_MECAB[kind]):
        return "char", (
            f"BLEU counts characters, not words, because MeCab is not installed; for {kind} "
            f"words (and comparable figures): pip install 'sacrebleu[{kind}]'",
        )
    return _MECAB[kind], ()


def check_tokenizer(name: str) -> None:
    """Refuse a tokenizer whose package is missing.

    Raises:
        EvaluationError: saying what to install.
    """
    if not _installed(name):
        extra = name.removesuffix("-mecab")
        raise EvaluationError(
            f"the tokenizer {name} needs MeCab, which is not installed: "
            f"pip install 'sacrebleu[{extra}]'"
        )


def _installed(name: str) -> bool:
    try:
        BLEU(tokenize=name)
    except RuntimeError:
        return False
    return True
