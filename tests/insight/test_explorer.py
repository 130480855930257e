"""What the viewer is given: every weight to half a unit of 1/65535, the beam, text that is text."""

import base64
import html
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tests.contrast import contrast, luminance

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import ConfigError, DataError
from kakehashi.inference.bundle import Bundle
from kakehashi.inference.options import Options
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator
from kakehashi.insight.explorer.component import SCRIPT, STYLE, Scene, scene, viewer
from kakehashi.insight.explorer.labels import Label, direction, labels
from kakehashi.insight.explorer.page import page
from kakehashi.insight.explorer.payload import ERROR, payload
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.symbols import BOS, EOS, UNK

MODELS = {
    "transformer": TransformerConfig(
        encoder_layers=3, decoder_layers=2, d_model=24, d_feedforward=37, n_heads=4
    ),
    "rnn": RNNConfig(d_embedding=14, d_hidden=17, d_attention=11, d_maxout=14),
}
LINE = "Der Hund schläft."
SLACK = ERROR + 1e-6
"""The documented error, and what float32 loses when the same step is computed in another batch."""
TEXTS = [
    "Das kostet $5_$ & <b>mehr</b>.",
    "</script><script>alert(1)</script><!--",
    "&amp; &lt; \\u003c \\ \" ' ` ${x}",
    "猫は本を読みます。",
    "הכלב ישן, והחתול ער.",
    "القطة نائمة",
    "👩‍🚀🐈 é é",
    "eins\u2028zwei\u200bdrei\ud800 vier",
    "\u202erückwärts\u202c",
]


@pytest.fixture(scope="module")
def tokenizer(small_corpus: Any) -> Tokenizer:
    return Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)


def translator_of(name: str, tokenizer: Tokenizer) -> Translator:
    torch.manual_seed(7)
    model = build_model(MODELS[name], 401).eval()
    model.output.restrict(torch.tensor([EOS, *tokenizer.ordinary_pieces()]))
    search = DecodingConfig(beam=4, max_ratio=0.2, max_extra=4)
    config = BundleConfig(model.config, 401, "de", "en", 200, search, "", "")
    return Translator.of(Bundle(model, tokenizer, config))


@pytest.fixture(scope="module")
def translators(tokenizer: Tokenizer) -> dict[str, Translator]:
    return {name: translator_of(name, tokenizer) for name in MODELS}


@pytest.fixture(scope="module")
def scenes(translators: dict[str, Translator]) -> dict[str, Scene]:
    return {name: scene(one, LINE) for name, one in translators.items()}


def numbers(data: str) -> npt.NDArray[np.float64]:
    return np.frombuffer(base64.b64decode(data), "<u2").astype(np.float64) / 65535


def embedded(text: str) -> Any:
    """The data as a browser finds them: what stands in the script element, and nothing undone."""

    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[str] = []

        def handle_data(self, data: str) -> None:
            if self.get_starttag_text() == '<script type="application/json">':
                self.found.append(data)

    reader = Reader()
    reader.feed(text)
    return json.loads(reader.found[0])


def stored(read: dict[str, Any], path: dict[str, Any], kind: str) -> npt.NDArray[np.float64]:
    """[L H rows columns], put together from the steps of a path."""
    layers, heads = read[kind]["layers"], read[kind]["heads"]
    flat, sources = numbers(read[kind]["data"]), len(read["source"])
    if kind == "encoder":
        return flat.reshape(layers, heads, sources, sources)
    if kind == "cross":
        return flat.reshape(-1, layers, heads, sources)[path["steps"]].transpose(1, 2, 0, 3)
    widths = np.zeros(len(read["candidates"]), dtype=int)
    for other in read["paths"]:
        widths[other["steps"]] = np.arange(1, len(other["steps"]) + 1)
    starts = np.concatenate([[0], np.cumsum(widths * layers * heads)])
    length = len(path["steps"])
    found = np.zeros((layers, heads, length, length))
    for n, step in enumerate(path["steps"]):
        part = flat[starts[step] : starts[step + 1]].reshape(layers, heads, n + 1)
        found[:, :, n, : n + 1] = part
    return found


@pytest.mark.parametrize("name", MODELS)
def test_what_is_stored_equals_the_tensors(
    name: str, translators: dict[str, Translator], scenes: dict[str, Scene], tokenizer: Tokenizer
) -> None:
    translator = translators[name]
    read = embedded(viewer([scenes[name]], "it"))["scenes"][0]
    engine = translator.engine
    assert isinstance(engine, TorchEngine)
    config = translator.config.decoding
    (found,) = engine.search([tokenizer.encode(LINE)], config=config, n_best=4)
    assert len(read["paths"]) == len(found) > 1
    for hypothesis, path in zip(found, read["paths"], strict=True):
        maps = engine.maps(tokenizer.encode(LINE), hypothesis.ids)
        for kind in ("encoder", "cross", "decoder"):
            layers = getattr(maps, kind)
            assert (read[kind] is None) == (not layers)
            if layers:
                expected = torch.cat(layers).double().numpy()
                assert np.abs(stored(read, path, kind) - expected).max() <= SLACK
        assert path["score"] == pytest.approx(hypothesis.score, abs=1e-4)
        assert path["logProbability"] == pytest.approx(hypothesis.log_probability, abs=1e-4)
        written = len(hypothesis.ids) + hypothesis.finished
        total = np.log(path["probabilities"][:written]).sum()
        assert total == pytest.approx(hypothesis.log_probability, abs=0.05)
        assert path["output"][-1][0] == ("end" if hypothesis.finished else "cut")


def test_equal_prefixes_share_their_steps(scenes: dict[str, Scene]) -> None:
    shown = scenes["transformer"]
    prefixes = {
        tuple(label.text for label in path.output[:n]): step
        for path in shown.paths
        for n, step in enumerate(path.steps)
    }
    assert len(shown.steps) == len(set(prefixes.values())) <= len(prefixes)
    assert len(shown.steps) < sum(len(path.steps) for path in shown.paths)


@pytest.mark.parametrize("name", MODELS)
def test_the_beam_is_the_searchs_own(
    name: str, translators: dict[str, Translator], scenes: dict[str, Scene]
) -> None:
    translator, shown = translators[name], scenes[name]
    engine, tokenizer = translator.engine, translator.tokenizer
    row = tokenizer.encode(LINE)
    texts: list[list[tuple[str, ...]]] = [[()]]
    for slots in shown.beam:
        texts.append([(*texts[-1][slot.parent], slot.label.text) for slot in slots])
        assert 1 <= len(slots) <= 4
        totals = [slot.log_probability for slot in slots]
        assert totals == sorted(totals, reverse=True)
    # the paths that ended were alive before they did, step by step
    for path in shown.paths:
        written = tuple(label.text for label in path.output[:-1])
        for n in range(1, len(written) + path.finished):
            alive = texts[n] if n < len(texts) else []
            place = alive.index(written[:n])
            assert shown.beam[n - 1][place].step == path.steps[n]
    # and forced decoding gives each slot's log probability
    number = {piece: i for i, piece in enumerate(tokenizer.pieces(range(401)))}
    first = shown.beam[0]
    for slot in first:
        piece = ("\u2581" if slot.label.spaced else "") + slot.label.text
        if piece in number:
            (read,) = engine.follow([row], [[number[piece]]])
            assert read.log_probabilities[0] == pytest.approx(slot.log_probability, abs=1e-4)


def test_candidates_are_the_likeliest(
    translators: dict[str, Translator], scenes: dict[str, Scene]
) -> None:
    translator, shown = translators["transformer"], scenes["transformer"]
    best = translator.translate([LINE], Options(details=True))[0].hypotheses[0]
    for n, step in enumerate(shown.paths[0].steps):
        shares = [share for _, share in shown.steps[step].candidates]
        assert len(shares) == 5 and shares == sorted(shares, reverse=True) and sum(shares) <= 1
        own = shown.paths[0].probabilities[n]
        if n < len(best.token_log_probabilities):
            assert own == pytest.approx(np.exp(best.token_log_probabilities[n]), rel=1e-3)
        assert own <= shares[0] + 1e-6


def test_a_given_translation(translators: dict[str, Translator]) -> None:
    shown = scene(translators["rnn"], LINE, "The dog.")
    (path,) = shown.paths
    assert (path.text, path.score, shown.beam) == ("The dog.", None, ())
    scored = next(iter(translators["rnn"].score([(LINE, "The dog.")])))
    assert path.log_probability == pytest.approx(scored.log_probability, abs=1e-4)


@pytest.mark.parametrize("text", TEXTS)
def test_no_text_ends_the_data_or_is_markup(text: str, translators: dict[str, Translator]) -> None:
    shown = scene(translators["rnn"], text, text)
    made = page([shown]).decode("utf-8")
    assert made.count("<script") == made.count("</script>") == 2
    block = made.split('<script type="application/json">')[1].split("</script>")[0]
    assert block.isascii() and not re.findall("[<>&]", block)
    read = embedded(made)["scenes"][0]
    assert read["line"] == text
    plain = html.unescape(made.split('<p dir="auto">')[1].split("<br>")[0])
    assert plain == text.replace("\ud800", "\ufffd")


class TestLabels:
    def test_every_character_can_be_read(self, tokenizer: Tokenizer) -> None:
        found = labels(tokenizer, [BOS, *tokenizer.encode("Hund 🐈猫\u200b"), UNK, EOS])
        assert found[0] == Label("start", control=True) and found[-1] == Label("end", control=True)
        assert found[-2].control
        texts = [label.text for label in found]
        assert [text for text in texts if "🐈" in text] == ["🐈¹", "🐈²", "🐈³", "🐈⁴"]
        assert [text for text in texts if "猫" in text] == ["猫¹", "猫²", "猫³"]
        assert any("[U+200B]" in text for text in texts)
        assert found[1].spaced and not found[-3].spaced

    def test_bytes_that_spell_nothing(self, tokenizer: Tokenizer) -> None:
        numbers = tokenizer.numbers(["<0xF0>", "<0x9F>", "<0x41>"])
        assert [label.text for label in labels(tokenizer, numbers)] == ["0xF0", "0x9F", "A"]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Hund", "ltr"),
            ("123 שלום", "rtl"),
            ("القطة a", "rtl"),
            ("a القطة", "ltr"),
            ("12", "ltr"),
        ],
    )
    def test_direction(self, text: str, expected: str) -> None:
        assert direction(text) == expected


def test_what_a_viewer_is_made_of(scenes: dict[str, Scene]) -> None:
    made = viewer(list(scenes.values()), 'a"b')
    assert made.startswith('<div class="attention-viewer" id="a&quot;b">')
    models = [one["model"] for one in embedded(made)["scenes"]]
    assert models == ["Transformer", "RNN"]
    with pytest.raises(ValueError):
        viewer([], "it")


def test_the_component_asks_nobody_and_makes_no_code_of_text() -> None:
    for dangerous in (
        *("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("),
        *("fetch(", "XMLHttpRequest", "import(", "WebSocket", "localStorage", "url("),
    ):
        assert dangerous not in SCRIPT + STYLE
    addresses: Sequence[str] = re.findall(r"https?://[^\"']+", SCRIPT + STYLE)
    assert set(addresses) == {"http://www.w3.org/2000/svg"}  # a name, which nobody asks
    rules = re.sub(r"/\*.*?\*/", "", STYLE, flags=re.DOTALL)
    for selector in re.findall(r"([^{};]+)\{", rules):
        if not selector.strip().startswith("@"):
            for one in re.split(r",(?![^(]*\))", selector):
                assert one.strip().startswith(".attention-viewer"), one


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(scheme: str) -> None:
    """AA: 4.5 for text, 3 for lines and marks; and the map's scale goes one way."""
    light, dark = re.findall(r"\.attention-viewer \{\s+(--.*?)\}", STYLE, re.DOTALL)
    colour = dict(re.findall(r"--([\w-]+): (#\w{6});", light if scheme == "light" else dark))
    texts = [("ink", "sheet"), ("ink", "paper"), ("quiet", "sheet"), ("quiet", "paper")]
    texts += [("ink", "mark"), ("on-accent", "accent")]
    marks = [("accent", "sheet"), ("focus", "sheet"), ("field", "sheet")]
    for pairs, least in ((texts, 4.5), (marks, 3.0)):
        for front, back in pairs:
            assert contrast(colour[front], colour[back]) >= least, (front, back)
    steps = [luminance(colour[f"map-{n}"]) for n in range(3)]
    assert steps == sorted(steps, reverse=scheme == "light")
    assert contrast(colour["map-0"], colour["map-2"]) > 12


def test_what_cannot_be_shown(translators: dict[str, Translator]) -> None:
    with pytest.raises(DataError, match="no visible"):
        scene(translators["rnn"], " \u200b")
    with pytest.raises(DataError, match="at most 200"):
        scene(translators["rnn"], "x" * 900)

    class Other:
        name = "other"

    one = translators["rnn"]
    with pytest.raises(ConfigError, match="other engine"):
        scene(Translator(Other(), one.tokenizer, one.config), LINE)  # type: ignore[arg-type]


def test_a_page_of_sixty_pieces_is_light(translators: dict[str, Translator]) -> None:
    line = " ".join(["Der Hund schläft im Garten und die Katze auch."] * 9)
    rows = translators["transformer"].tokenizer.encode(line)[:60]
    line = translators["transformer"].tokenizer.decode(rows)
    made = page([scene(translators["transformer"], line, line)])
    assert len(made) < 1_000_000
    read = payload([scene(translators["transformer"], line, line)])["scenes"][0]
    assert len(read["source"]) > 55
