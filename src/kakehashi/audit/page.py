"""An audit as one HTML page that needs nothing else: no network, no script, light and dark."""

from collections.abc import Iterable, Iterator
from html import escape
from importlib.metadata import version

from kakehashi.audit.charts import histogram
from kakehashi.audit.findings import SEVERITIES, Example, Finding
from kakehashi.audit.lengths import Distribution
from kakehashi.audit.run import Audit, SplitAudit
from kakehashi.audit.style import STYLE
from kakehashi.audit.terminal import counted, number, spelled, summary
from kakehashi.audit.visible import parts

_SHOWN = 400


def page(found: Audit) -> bytes:
    """The page in UTF-8. Everything that comes from the corpus is escaped."""
    title = "Corpus check"
    body = [
        f"<header><h1>{title}</h1>",
        f"<p class='lead'>{escape(summary(found))}</p></header>",
        _toc(found),
        "<main>",
    ]
    body += [f"<section class='split'>{''.join(_split(split))}</section>" for split in found.splits]
    for severity in SEVERITIES:
        several = len(found.splits) > 1
        cards = [
            _card(finding, split.name if several else "")
            for split in found.splits
            for finding in split.findings
            if finding.severity == severity
        ]
        cards += [_card(finding, "") for finding in found.overlaps if finding.severity == severity]
        if cards:
            body.append(f"<h2 id='{severity}'>{severity.title()}s</h2>")
            body += cards
    if found.skipped:
        body.append("<h2 id='skipped'>Not checked</h2>")
        body += [f"<p>{escape(reason)}</p>" for reason in found.skipped]
    body.append("</main>")
    body.append(f"<footer>kakehashi {version('kakehashi')}, <code>check</code></footer>")
    text = (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        # The browser itself is told that the page may load nothing.
        "<meta http-equiv='Content-Security-Policy' "
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )
    return text.encode("utf-8", "xmlcharrefreplace")


def _toc(found: Audit) -> str:
    counts = [(s, sum(f.severity == s for f in found.findings)) for s in SEVERITIES]
    links = [
        f"<a class='{s}' href='#{s}'>{n} {s}{'' if n == 1 else 's'}</a>" for s, n in counts if n
    ]
    return f"<nav>{''.join(links)}</nav>"


def _split(split: SplitAudit) -> Iterator[str]:
    text = split.text
    languages = f"{text.source_language or '?'} → {text.target_language or '?'}"
    yield f"<h2>{escape(split.name)} <small>{len(text):,} pairs · {escape(languages)}</small></h2>"
    yield f"<p class='files'>{_shown(text.name)}</p>"
    distributions = [*split.lengths, *(pieces.lengths for pieces in split.pieces)]
    yield f"<div class='charts'>{''.join(map(_chart, distributions))}</div>"
    yield "".join(f"<p>{escape(spelled(pieces))}</p>" for pieces in split.pieces)


def _chart(lengths: Distribution) -> str:
    quantiles = dict(lengths.quantiles)
    values = [("mean", lengths.mean), ("median", quantiles[0.5])]
    values += [("95 %", quantiles[0.95]), ("99 %", quantiles[0.99]), ("max", quantiles[1.0])]
    cells = "".join(f"<div><dt>{n}</dt><dd>{number(v)}</dd></div>" for n, v in values)
    return (
        f"<figure><figcaption>{escape(lengths.what)}</figcaption>{histogram(lengths)}"
        f"<dl>{cells}</dl></figure>"
    )


def _card(finding: Finding, name: str) -> str:
    told = counted(finding) if finding.of else ""
    where = " · ".join(part for part in (name, finding.side) if part and part != "both")
    rows = "".join(_row(finding, example) for example in finding.examples)
    sides = "".join(f"<th>{side}</th>" for side in ("source", "target"))
    head = f"<th>line</th>{sides}"
    head += "<th></th>" if any(example.detail for example in finding.examples) else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
    return (
        f"<article class='{finding.severity}' id='{escape(finding.code)}'>"
        f"<h3>{_shown(finding.title)}</h3>"
        f"<p class='count'>{f'<b>{escape(where)}</b> ' if where else ''}{escape(told)}"
        f" <code>{escape(finding.code)}</code></p>"
        f"<p>{escape(finding.advice)}</p><div class='wide'>{table}</div></article>"
    )


def _row(finding: Finding, example: Example) -> str:
    cells = [f"<td class='line'>{example.line}</td>"]
    cells += [_cell(example.source), _cell(example.target)]
    if any(other.detail for other in finding.examples):
        cells.append(f"<td class='detail'>{_shown(example.detail)}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _cell(sentence: str) -> str:
    # dir=auto: each sentence in its own direction of writing.
    return f"<td dir='auto'>{_shown(sentence)}</td>"


def _shown(text: str) -> str:
    return "".join(_run(run) for run in _merged(parts(text, _SHOWN)))


def _run(run: tuple[str, bool]) -> str:
    shown, hidden = run
    return f"<mark>{escape(shown)}</mark>" if hidden else escape(shown)


def _merged(runs: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Neighbouring marks as one, so that a page of controls stays small."""
    merged: list[tuple[str, bool]] = []
    for shown, hidden in runs:
        if merged and merged[-1][1] == hidden:
            merged[-1] = (merged[-1][0] + shown, hidden)
        else:
            merged.append((shown, hidden))
    return merged
