"""Text that was decoded with the wrong encoding: `schÃ¶n` for `schön`."""

import importlib.util
from collections.abc import Iterator

from kakehashi.audit.findings import Finding, Hits, Text


def installed() -> bool:
    """Whether the library that knows such text is there."""
    return importlib.util.find_spec("ftfy") is not None


def mojibake(text: Text) -> Iterator[Finding]:
    """Lines that ftfy finds badly decoded, and can mend: both must hold."""
    import ftfy
    from ftfy.badness import is_bad

    for side, lines, _ in text.sides():
        hits = Hits()
        for index, line in enumerate(lines):
            if line.isascii() or not is_bad(line):
                continue
            mended = ftfy.fix_encoding(line)
            if mended != line:
                hits.add(index, f"meant: {mended}")
        if hits.count:
            advice = "read the original with its own encoding, or mend the lines with ftfy"
            title = "lines decoded with the wrong encoding"
            yield hits.finding(text, "characters.mojibake", "warning", title, side, advice)
