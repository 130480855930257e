"""The whole audit of a corpus: every check, in the order in which a report shows them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kakehashi.audit import languages, mojibake
from kakehashi.audit.alignment import alignment
from kakehashi.audit.characters import normal_forms, odd_characters
from kakehashi.audit.duplicates import duplicates
from kakehashi.audit.findings import Finding, Text, by_severity
from kakehashi.audit.keys import Keys
from kakehashi.audit.lengths import Distribution, distributions, ratio_outliers
from kakehashi.audit.overlap import overlap
from kakehashi.audit.sentences import blank_sides, markup, no_words, untranslated
from kakehashi.audit.subwords import Pieces, in_pieces
from kakehashi.data.languages import installed
from kakehashi.data.tokenizer import Tokenizer

INSTALL = "pip install 'kakehashi[check]'"


@dataclass
class SplitAudit:
    """What was found in one split."""

    name: str
    text: Text
    lengths: list[Distribution]
    findings: list[Finding]
    pieces: list[Pieces] = field(default_factory=list)


@dataclass
class Audit:
    """What was found in a corpus."""

    splits: list[SplitAudit]
    overlaps: list[Finding]
    """Between the splits."""
    skipped: list[str]
    """Checks that were not made, and why."""

    @property
    def findings(self) -> list[Finding]:
        """All of them, errors first."""
        every = [finding for split in self.splits for finding in split.findings]
        return by_severity([*every, *self.overlaps])

    @property
    def clean(self) -> bool:
        """Whether there is neither an error nor a warning."""
        return all(finding.severity == "note" for finding in self.findings)


def audit(
    splits: Mapping[str, Text],
    *,
    tokenizer: Tokenizer | None = None,
    identify: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Check the splits of a corpus (train, valid, test) and what they have in common.

    `tokenizer` adds what it makes of the text; `identify=False` leaves out the identification of
    languages, which takes the most time. `say` hears what is being done. Reads, changes nothing.
    """
    identify_languages = identify and installed()
    skipped = []
    if identify and not identify_languages:
        skipped.append(f"languages were not identified: it needs py3langid ({INSTALL})")
    if not mojibake.installed():
        skipped.append(f"wrong encodings were not looked for: it needs ftfy ({INSTALL})")
    done: list[SplitAudit] = []
    keys: dict[str, Keys] = {}
    for name, text in splits.items():
        say(f"{name}: text and lengths")
        keys[name] = Keys.of(text)
        split = SplitAudit(name, text, distributions(text), _text_checks(text, keys[name]))
        if identify_languages:
            say(f"{name}: languages")
            split.findings += languages.languages(text)
        say(f"{name}: alignment")
        split.findings += alignment(text)
        if tokenizer is not None:
            say(f"{name}: tokenizer")
            split.pieces, unknown = in_pieces(text, tokenizer)
            split.findings += unknown
        split.findings = by_severity(split.findings)
        done.append(split)
    say("overlap")
    return Audit(done, list(overlap(splits, keys)), skipped)


def _text_checks(text: Text, keys: Keys) -> list[Finding]:
    findings = [
        *blank_sides(text),
        *no_words(text),
        *untranslated(text, keys),
        *duplicates(text, keys),
        *ratio_outliers(text),
        *odd_characters(text),
        *normal_forms(text),
        *markup(text),
        *languages.wrong_script(text),
    ]
    if mojibake.installed():
        findings += mojibake.mojibake(text)
    return findings
