"""Pairs that teach nothing: a side without text, without words, or without a translation."""

import html
import re
from collections import Counter
from collections.abc import Iterator
from html.entities import html5

import numpy as np

from kakehashi.audit.findings import Finding, Hits, Severity, Side, Text
from kakehashi.audit.keys import Keys
from kakehashi.data.reading import is_blank

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^<>]{0,300})?/?>|<!--")
_MANY_COPIES = 0.005
"""Share of pairs from which on copies are more than names."""


def blank_sides(text: Text) -> Iterator[Finding]:
    """Blank on one side (a translation is missing) and on both (an empty line)."""
    hits: dict[Side, Hits] = {"source": Hits(), "target": Hits(), "both": Hits()}
    for index, (source, target) in enumerate(zip(text.source, text.target, strict=False)):
        blank_source, blank_target = is_blank(source), is_blank(target)
        if blank_source or blank_target:
            both = blank_source and blank_target
            hits["both" if both else "source" if blank_source else "target"].add(index)
    advice = "training leaves such pairs out; the neighbours stay paired"
    sides: tuple[Side, ...] = ("source", "target")
    for side in sides:
        if hits[side].count:
            title = f"blank {side} beside a text"
            yield hits[side].finding(text, f"blank.{side}", "warning", title, side, advice)
    if hits["both"].count:
        title = "both sides blank"
        yield hits["both"].finding(text, "blank.both", "note", title, "both", advice)


def no_words(text: Text) -> Iterator[Finding]:
    """Lines without a letter or a digit that are not blank, such as `@@`."""
    for side, lines, _ in text.sides():
        hits = Hits()
        for index, line in enumerate(lines):
            if not any(map(str.isalnum, line)) and not is_blank(line):
                hits.add(index)
        if hits.count:
            title = "no letter and no digit: punctuation only"
            advice = "what stood here was lost, or it never was a sentence"
            yield hits.finding(text, "sentence.no_words", "warning", title, side, advice)


def untranslated(text: Text, keys: Keys) -> Iterator[Finding]:
    """Pairs whose sides are the same, letters and digits compared."""
    n = len(text)
    hits = Hits()
    for index in np.flatnonzero(keys.source[:n] == keys.target[:n]).tolist():
        if any(map(str.isalpha, text.source[index])):
            hits.add(index)
    if hits.count:
        advice = "names and loan words may be right; whole sentences teach the model to copy"
        severity: Severity = "warning" if hits.count > _MANY_COPIES * n else "note"
        title = "the target repeats the source"
        yield hits.finding(text, "pairs.untranslated", severity, title, "both", advice)


def markup(text: Text) -> Iterator[Finding]:
    """Character entities (`&amp;`, `&#39;`) and tags (`<b>`, `</i>`)."""
    for side, lines, _ in text.sides():
        entities, tags = Hits(), Hits()
        seen: dict[str, Counter[str]] = {"entities": Counter(), "tags": Counter()}
        for index, line in enumerate(lines):
            if "&" in line and (found := [e for e in _ENTITY.findall(line) if _is_entity(e)]):
                seen["entities"].update(found)
                entities.add(index, f"means {html.unescape(found[0])}", len(found))
            if "<" in line and (found := _TAG.findall(line)):
                seen["tags"].update(found)
                tags.add(index, found[0], len(found))
        if entities.count:
            title = f"character entities: {_most(seen['entities'])}"
            advice = "the model learns to write them: replace them by what they stand for"
            yield entities.finding(text, "markup.entities", "warning", title, side, advice)
        if tags.count:
            title = f"tags: {_most(seen['tags'])}"
            advice = "strip them, or keep them whole as symbols of the tokenizer"
            yield tags.finding(text, "markup.tags", "warning", title, side, advice)


def _is_entity(found: str) -> bool:
    return found[1] == "#" or found[1:] in html5


def _most(seen: Counter[str]) -> str:
    shown = ", ".join(f"{what} × {n:,}" for what, n in seen.most_common(3))
    return shown + (", ..." if len(seen) > 3 else "")
