"""The model card: README.md of a model folder, written by the run that made the model.

Mitchell et al. (2019), Model Cards for Model Reporting: what it is, what it was made from, how
good it is and on what, what it is for and what it is not for.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from kakehashi.decoding.config import DecodingConfig
from kakehashi.evaluation.scores import Scores


@dataclass(frozen=True)
class CardFacts:
    """Plain facts; none of them is guessed."""

    source_language: str
    target_language: str
    model: Mapping[str, Any]
    """Its settings, see ``models.config.model_settings``."""
    vocab_size: int
    parameters: int
    """Trained numbers, tied ones counted once."""
    corpus: str
    licence: str
    attribution: str
    train_pairs: int
    valid_pairs: int
    test_pairs: int
    max_length: int
    """Most pieces of a training sentence, EOS included."""
    decoding: DecodingConfig
    """The search behind ``scores``, and the default of the model."""
    scores: Scores | None
    """On the test split; None where the corpus has none."""
    training: Mapping[str, str] = field(default_factory=dict)
    """Rows of the table about training: what, and how much, in Markdown (updates, time, seed)."""
    samples: Sequence[tuple[str, str, str]] = ()
    """Source, translation, reference of a few test sentences."""
    version: str = "unknown"
    """Of this package, when the model was made."""
    apart: bool = True
    """Whether the test split was held out so that no sentence of it is in the training pairs."""
    measured: Sequence[str] = ()
    """What else the translations of the test split show, a sentence each, in Markdown."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Files or packages that the corpus came from, each with its hash or revision."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Of the sentences of each split, see ``Pairs.digest``."""
    pairs_read: int = 0
    """Pairs that training, and what is held out of it, were taken from."""
    ledger: Sequence[tuple[str, str, str, int]] = ()
    """Split, reason, what was done, and the number of pairs that it was done to."""


def model_card(facts: CardFacts, scores: str | None = None) -> str:
    """The text of README.md, in Markdown with the front matter that model hubs read.

    ``scores`` takes the place of what ``facts`` say of the test split.
    """
    languages = [facts.source_language, facts.target_language]
    parts = [
        _front_matter(languages),
        f"# {facts.source_language} to {facts.target_language} translation\n\n"
        f"A model of {facts.parameters:,} parameters ({facts.model['name']}) that translates from "
        f"{facts.source_language} to {facts.target_language}, trained on {plain(facts.corpus)} "
        f"with Kakehashi {facts.version}.",
        _use(),
        _scores(facts) if scores is None else f"## Scores\n\n{scores}",
        _corpus(facts),
        _limits(facts),
        "## How it was made\n\n" + _table(_made(facts)),
    ]
    if facts.samples:
        parts.append("## Translations of test sentences\n\n" + _samples(facts.samples))
    return "\n\n".join(parts) + "\n"


def _front_matter(languages: list[str]) -> str:
    codes = "\n".join(f"- {json.dumps(code, ensure_ascii=False)}" for code in languages)
    return f"---\nlanguage:\n{codes}\npipeline_tag: translation\nlibrary_name: kakehashi\n---"


def _use() -> str:
    return """## How to use it

```
kakehashi translate FOLDER < lines.txt
```

or in Python, where FOLDER is the folder that this file stands in:

```python
from kakehashi import Translator

translator = Translator.load("FOLDER")
for translation in translator.translate(["..."]):
    print(translation.text)
```"""


def _scores(facts: CardFacts) -> str:
    if facts.scores is None:
        return "## Scores\n\nNone: the corpus came without a test split."
    rows = ["| metric | score | 95 % interval | signature |", "|---|---|---|---|"]
    for score in (facts.scores.bleu, facts.scores.chrf):
        interval = "not computed"
        if score.low is not None and score.high is not None:
            interval = f"{score.low:.2f} to {score.high:.2f}"
        signature = f"`{_no_bars(score.signature)}`"
        rows.append(f"| {score.name} | {score.value:.2f} | {interval} | {signature} |")
    # a test split that was given is the user's own affair: overlaps were reported, not left out
    apart = " that share no sentence with the training pairs" if facts.apart else ""
    search = (
        f"On {facts.test_pairs:,} test pairs{apart}, beam {facts.decoding.beam}, length penalty "
        f"{facts.decoding.length_penalty:g}."
    )
    notes = [f"Note: {note}." for note in facts.scores.notes]
    return "\n\n".join(["## Scores", search, "\n".join(rows), *notes])


def _corpus(facts: CardFacts) -> str:
    parts = [
        f"## Training data\n\n{plain(facts.corpus)}: {facts.train_pairs:,} pairs for training, "
        f"{facts.valid_pairs:,} for validation, {facts.test_pairs:,} for the test.",
        f"Licence of the corpus: {plain(facts.licence)}. {plain(facts.attribution)}".rstrip(),
    ]
    if facts.ledger:
        rows = ["| split | reason | what was done | pairs |", "|---|---|---|---|"]
        rows += [
            f"| {split} | {_cell(reason)} | {action} | {pairs:,} |"
            for split, reason, action, pairs in facts.ledger
        ]
        parts += [f"Of {facts.pairs_read:,} pairs read:", "\n".join(rows)]
    if facts.provenance or facts.sha256:
        rows = ["| data | what tells whether another copy is the same |", "|---|---|"]
        rows += [
            f"| {_cell(public_name(n))} | {_cell(said)} |" for n, said in facts.provenance.items()
        ]
        rows += [f"| sentences of {n} | sha256 {hashed} |" for n, hashed in facts.sha256.items()]
        parts += ["\n".join(rows)]
    return "\n\n".join(parts)


def public_name(name: str) -> str:
    """A file that was named from the top of the machine, without the folders that it lay in."""
    return PurePath(name).name if PurePath(name).is_absolute() else name


def _limits(facts: CardFacts) -> str:
    measured = "\n".join(f"- {said}" for said in facts.measured)
    text = f"""## What it is for, and what it is not for

For sentences like those of the training data. It translates each line by itself, without what
was said before, so that a pronoun or a politeness level that depends on context is a guess. Of
sentences longer than {facts.max_length:,} pieces it has seen none in training. It repeats the
errors and the leanings of its corpus, and what it writes can be fluent and wrong: have a person
check every translation on which something depends."""
    return f"{text}\n\nMeasured on the test split:\n\n{measured}" if measured else text


def _made(facts: CardFacts) -> list[tuple[str, str]]:
    settings = dict(facts.model) | {"score": facts.model["score"]["name"]}
    described = ", ".join(f"{name} {value}" for name, value in settings.items() if name != "name")
    return [
        ("architecture", f"{facts.model['name']}: {described}"),
        ("vocabulary", f"{facts.vocab_size:,} SentencePiece pieces, shared by both languages"),
        ("parameters", f"{facts.parameters:,}"),
        *facts.training.items(),
    ]


def _table(rows: Sequence[tuple[str, str]]) -> str:
    cells = (f"| {name} | {_no_bars(text)} |" for name, text in rows)
    return "\n".join(["| | |", "|---|---|", *cells])


def _samples(samples: Sequence[tuple[str, str, str]]) -> str:
    rows = ["| source | translation | reference |", "|---|---|---|"]
    rows += [f"| {' | '.join(_cell(text) for text in sample)} |" for sample in samples]
    return "\n".join(rows)


def plain(text: str) -> str:
    """The text on one line as it is: nothing of it may be taken for Markdown or HTML."""
    text = " ".join(text.splitlines())
    for character in "\\`*_[]<>#$~&":
        text = text.replace(character, "\\" + character)
    return text


def code_span(text: str) -> str:
    """Text as code, between more backquotes than it has in a row."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{text}{fence}" if fence == "`" else f"{fence} {text} {fence}"


def _cell(text: str) -> str:
    return _no_bars(plain(text))


def _no_bars(text: str) -> str:
    """Markdown for a table's cell, which a line feed ends, and a bar even inside a code span."""
    return " ".join(text.splitlines()).replace("|", "\\|")
