"""What goes in and comes out, in JSON; every field is checked, and unknown ones are refused."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


Phrases = Annotated[list[str], Field(max_length=8)]


class RuledText(_Question):
    """A text, and what its translation has to look like."""

    text: str
    prefix: Annotated[str, Field(description="The translation begins so.")] = ""
    required: Annotated[Phrases, Field(description="Each of these stands in it.")] = []
    forbidden: Annotated[Phrases, Field(description="None of these stands in it.")] = []


KINDS = ("a text", "a text with rules")
"""What pydantic calls the two forms of a text."""


def _kind(text: object) -> str:
    return KINDS[isinstance(text, dict | RuledText)]


AnyText = Annotated[
    Annotated[str, Tag(KINDS[0])] | Annotated[RuledText, Tag(KINDS[1])], Discriminator(_kind)
]


class SamplingQuestion(_Question):
    """Draw translations instead of searching for the best: a sentence and a seed decide them."""

    temperature: Annotated[float, Field(gt=0, le=10)] = 1.0
    top_k: Annotated[int, Field(ge=0, description="0 is off.")] = 0
    top_p: Annotated[float, Field(gt=0, le=1, description="1 is off.")] = 1.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1


class TranslateQuestion(_Question):
    """Texts to translate; each becomes one line, translated as if it were alone.

    What is not given is as the model says.
    """

    texts: Annotated[list[AnyText], Field(min_length=1, description="One sentence each, or a few.")]
    beam: Annotated[int | None, Field(ge=1, description="Hypotheses kept; 1 is greedy.")] = None
    n_best: Annotated[int, Field(ge=1, description="Candidates of each text, at most beam.")] = 1
    length_penalty: Annotated[
        float | None, Field(ge=0, le=10, description="Larger prefers longer translations.")
    ] = None
    coverage_penalty: Annotated[
        float | None, Field(ge=0, le=10, description="Larger leaves out less of the source.")
    ] = None
    min_ratio: Annotated[
        float | None, Field(ge=0, le=1.5, description="Pieces for each source piece, at least.")
    ] = None
    no_repeat_ngram: Annotated[
        int | None, Field(ge=0, description="No n pieces in a row twice; 0 is off.")
    ] = None
    repetition_penalty: Annotated[
        float | None, Field(ge=1, le=10, description="Larger repeats less; 1 is off.")
    ] = None
    sampling: SamplingQuestion | None = None
    split: Annotated[bool, Field(description="Sentence by sentence.")] = False
    markup: Annotated[
        bool, Field(description="Tags such as <b> go with the words that they enclose.")
    ] = False
    placeholders: Annotated[
        bool, Field(description="{name}, %s, addresses and the like stay as they are.")
    ] = False
    details: Annotated[
        bool, Field(description="Words of every candidate: probabilities and alignment.")
    ] = False


class Pair(_Question):
    """A text and a translation of it."""

    source: str
    target: str


class PairsQuestion(_Question):
    """Texts with given translations."""

    pairs: Annotated[list[Pair], Field(min_length=1)]


class AttentionQuestion(_Question):
    """A sentence to look at while it is translated."""

    text: str
    beam: Annotated[int | None, Field(ge=1, description="Hypotheses kept.")] = None


class Word(BaseModel):
    """A word of a translation."""

    text: str
    probability: Annotated[
        float,
        Field(description="The model's probability of the word after those before it."),
    ]
    source: Annotated[list[int], Field(description="Words of the source it goes back to, from 0.")]


class Candidate(BaseModel):
    """One translation of a text."""

    text: str
    score: Annotated[float, Field(description="What candidates are ranked by; higher is better.")]
    log_probability: Annotated[float, Field(description="Natural logarithm, end included.")]
    words: Annotated[list[Word] | None, Field(description="With details only.")] = None


class Translation(BaseModel):
    """What became of a text."""

    text: str
    score: float
    candidates: Annotated[list[Candidate], Field(description="Best first; the first is `text`.")]
    source_words: Annotated[list[str] | None, Field(description="With details only.")] = None
    warnings: list[str]


class Scored(BaseModel):
    """How probable a given translation is."""

    log_probability: Annotated[float, Field(description="Natural logarithm, end included.")]
    perplexity: float
    tokens: list[str]
    token_log_probabilities: list[float]


class Aligned(BaseModel):
    """Which words belong together."""

    source_words: list[str]
    target_words: list[str]
    pairs: Annotated[
        list[tuple[int, int]], Field(description="Source word and target word, from 0.")
    ]


class Attended(BaseModel):
    """Every attention weight, in the form that the page's viewer reads; it may change."""

    scenes: list[dict[str, Any]]


Answer = Translation | Scored | Aligned | Attended


class TranslateAnswer(BaseModel):
    """One translation for each text, in order."""

    translations: list[Translation]


class ScoreAnswer(BaseModel):
    """One score for each pair, in order."""

    scores: list[Scored]


class AlignAnswer(BaseModel):
    """One alignment for each pair, in order."""

    alignments: list[Aligned]


class Health(BaseModel):
    """That the service answers, and how much it has to do."""

    status: str
    waiting: Annotated[int, Field(description="Sentences in the queue.")]


class Bounds(BaseModel):
    """What a request may hold."""

    body_bytes: int
    lines: int
    characters: int
    beam: int
    work: Annotated[int, Field(description="Pieces of a text times its beam.")]
    attention: Annotated[
        int, Field(description="Pieces of a text times twice its beam, where it is looked at.")
    ]
    seconds: float


class ModelAnswer(BaseModel):
    """Which model this is."""

    source_language: str
    target_language: str
    architecture: str
    engine: str
    vocabulary: int
    max_length: Annotated[int, Field(description="Most pieces of a sentence in its training.")]
    beam: Annotated[int, Field(description="Of a request that gives none.")]
    length_penalty: float
    kakehashi: Annotated[str, Field(description="The version of this service.")]
    limits: Bounds
    card: Annotated[str, Field(description="The model card, in Markdown.")]


class Refused(BaseModel):
    """Why there is no answer, in one sentence."""

    error: str
