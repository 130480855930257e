"""The report of a run as one HTML page that asks the network for nothing.

The browser is told so: its content policy allows this style and the viewer's script by their
hashes, and nothing else. Everything that comes from a corpus, a model or a configuration is
escaped. The page is a function of what the run has recorded: nothing is looked up here.
"""

from html import escape
from importlib.resources import files

from kakehashi.insight.explorer.component import SCRIPT as VIEWER_SCRIPT
from kakehashi.insight.explorer.component import STYLE as VIEWER_STYLE
from kakehashi.insight.policy import content_policy
from kakehashi.insight.report import making, quality
from kakehashi.insight.report.labels import figure
from kakehashi.insight.report.recorded import Recorded

_STYLE = files("kakehashi.insight.report").joinpath("style.css").read_text("utf-8")


def page(run: Recorded) -> bytes:
    """The page, in UTF-8."""
    sections = [
        quality.scores(run),
        making.curves(run),
        quality.lengths(run),
        quality.words(run),
        quality.flaws(run),
        quality.sentences(run),
        quality.attention(run),
        making.data(run),
        making.training(run),
        making.configuration(run),
        making.environment(run),
        making.commands(run),
    ]
    style = _STYLE + (VIEWER_STYLE if run.viewer else "")
    script = VIEWER_SCRIPT if run.viewer else ""
    title = escape(run.summary["name"])
    content = "\n".join(part for part in sections if part)
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy(style, script)}">\n'
        f"<title>{title}: report</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{_header(run)}\n{_contents(sections)}\n<main>\n{content}\n</main>\n"
        f"<footer><p>Written by kakehashi {escape(run.summary['versions']['kakehashi'])} from what "
        "the run has recorded.</p></footer>\n"
        + (f"<script>{script}</script>\n" if script else "")
        + "</body>\n</html>\n"
    )
    return text.encode("utf-8", "xmlcharrefreplace")


def _header(run: Recorded) -> str:
    summary = run.summary
    source, target = summary["source_language"], summary["target_language"]
    one_line = (
        f"{summary['model']['name']} with {summary['parameters']:,} parameters, {source} to "
        f"{target}, trained on {summary['corpus']['training_pairs']:,} pairs of "
        f"{summary['corpus']['name']}"
    )
    return (
        f"<header>\n<h1>{escape(summary['name'])}</h1>\n<p class='lead'>{escape(one_line)}</p>\n"
        f"{_headline(run)}</header>"
    )


def _headline(run: Recorded) -> str:
    scores = run.summary["test"]["scores"]
    if scores is None:
        return ""
    items = "".join(
        f"<div><dt>{escape(score['name'])}</dt><dd>{figure(score['value'], 1)}"
        + (
            f" <small>{figure(score['low'], 1)} to {figure(score['high'], 1)}</small>"
            if score["low"] is not None
            else ""
        )
        + "</dd></div>"
        for score in scores.values()
        if isinstance(score, dict)
    )
    return f"<dl class='headline'>{items}</dl>\n"


def _contents(sections: list[str]) -> str:
    """Links to all headings of the second level."""
    links = []
    for part in filter(None, sections):
        name, _, rest = part.partition('<h2 id="')[2].partition('">')
        links.append(f'<li><a href="#{name}">{rest.partition("</h2>")[0]}</a></li>')
    return f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>'
