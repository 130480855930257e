"""The picture is drawn whatever the labels hold, and shows what it is given."""

import logging
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib import font_manager, image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry

from kakehashi.errors import ConfigError, DataError
from kakehashi.insight import figure as room
from kakehashi.insight import fonts
from kakehashi.insight.fonts import DEFAULT, fonts_for, has_truetype_outlines, install_hint
from kakehashi.insight.heatmap import Panel, heatmap, heatmaps


def weights(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(5).dirichlet(np.ones(columns), rows)


def texts(figure: Figure) -> tuple[list[str], list[str]]:
    axes = figure.axes[0]
    return (
        [label.get_text() for label in axes.get_xticklabels()],
        [label.get_text() for label in axes.get_yticklabels()],
    )


def test_rows_are_target_and_columns_source(tmp_path: Path, figures: list[Figure]) -> None:
    values = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    heatmap(values, ["a", "b", "c"], ["x", "y"], tmp_path / "map.png", title="one head")
    axes = figures[0].axes[0]
    assert texts(figures[0]) == (["a", "b", "c"], ["x", "y"])
    assert np.array_equal(axes.collections[0].get_array(), values)
    assert axes.yaxis_inverted()
    assert [text.get_text() for text in figures[0].texts] == ["one head"]
    assert image.imread(tmp_path / "map.png").shape[2] == 4


def test_labels_are_taken_literally(tmp_path: Path, figures: list[Figure]) -> None:
    labels = ["$5_$", "%x#", "{a}", "\\frac", "$\\alpha$", "</s>", "a\nb"]
    heatmap(weights(7, 7), labels, labels, tmp_path / "map.png")
    shown = [*labels[:-1], "ab"]
    assert texts(figures[0]) == (shown, shown)
    for label in figures[0].axes[0].get_xticklabels():
        assert not label.get_parse_math()


def test_the_picture_grows_with_the_text_up_to_a_limit(figures: list[Figure]) -> None:
    for size in (3, 30, 401):
        labels = [f"p{i % 3}" for i in range(size)]
        heatmaps([Panel(weights(2, size), ["a", "b"], labels)], [])
    widths = [f.get_size_inches()[0] * f.axes[0].get_position().width for f in figures]
    assert widths == pytest.approx([3 * room.CELL, 30 * room.CELL, room.LARGEST])
    assert len(texts(figures[1])[0]) == 30


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml"), (".PNG", b"\x89PNG")],
)
def test_the_name_decides_the_kind_of_picture(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"map{suffix}"
    heatmap(weights(2, 3), ["a", "b", "c"], ["x", "y"], path)
    assert path.read_bytes().startswith(start)


def test_other_names_and_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"map\.bmp.*\.png, \.pdf, \.svg"):
        heatmap(weights(1, 1), ["a"], ["b"], tmp_path / "map.bmp")
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot write"):
        heatmap(weights(1, 1), ["a"], ["b"], tmp_path / "file" / "map.png")
    with pytest.raises(ValueError, match="2 target"):
        heatmap(weights(1, 3), ["a", "b", "c"], ["x", "y"], tmp_path / "map.png")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_users_own_style_does_not_break_it(tmp_path: Path) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"text.usetex": True, "font.family": ["No Such Font"]}):
        heatmap(weights(1, 2), ["$a", "b_"], ["c"], tmp_path / "map.png")
        assert mpl.rcParams["text.usetex"] is True


def test_many_pictures_in_one_process_warn_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    for settings in (mpl.rcParams, mpl.rcParamsDefault):
        monkeypatch.setitem(settings, "figure.max_open_warning", 1)
    for number in range(3):
        heatmaps([Panel(weights(1, 1), ["a"], ["b"])], [], title=str(number))


def test_characters_without_a_font_are_written_as_numbers_and_it_is_said(
    tmp_path: Path,
    figures: list[Figure],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kakehashi.insight.fonts._regular_fonts", list)
    with caplog.at_level(logging.WARNING):
        heatmap(weights(2, 2), ["猫が", "ок"], ["שלום", "🐶"], tmp_path / "map.png")
    assert texts(figures[0]) == (["U+732B U+304C", "ок"], ["שלום", "U+1F436"])
    assert "が 猫 🐶" in caplog.text
    assert "kakehashi[fonts]" in caplog.text
    assert "fonts-symbola" in caplog.text


def test_a_font_is_found_for_a_script_that_the_default_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    holds = {"/default": "ab", "/kana": "がで", "/cjk": "猫がで庭", "/rest": "🐶"}
    found = [FontEntry(fname=name, name=name[1:].title()) for name in holds if name != "/default"]
    monkeypatch.setattr("kakehashi.insight.fonts._regular_fonts", lambda: found)
    monkeypatch.setattr(
        "kakehashi.insight.fonts._characters",
        lambda name: frozenset(map(ord, holds.get(name, "ab"))),
    )
    families, missing = fonts_for(["ab", "猫が庭で", "🐶\u200b\ufe0f", "¿"])
    assert families == [DEFAULT, "Cjk", "Rest"]
    assert missing == {"¿"}


def test_placeholders_are_no_font_for_anything() -> None:
    families, missing = fonts_for(["\U0001f436猫"])
    assert not any(name.startswith("Last Resort") for name in families)
    assert missing <= {"\U0001f436", "猫"}


@pytest.mark.parametrize(
    ("characters", "commands"),
    [
        ("猫", ["kakehashi[fonts]"]),
        ("か", ["kakehashi[fonts]"]),
        ("한", ["kakehashi[fonts]"]),
        ("ฮ", ["fonts-noto-core"]),
        ("ฮ猫", ["kakehashi[fonts]", "fonts-noto-core"]),
    ],
)
def test_what_to_install(characters: str, commands: list[str]) -> None:
    hint = install_hint(characters)
    for command in ("kakehashi[fonts]", "fonts-noto-core"):
        assert (command in hint) == (command in commands)


def entries(*names: str) -> tuple[FontEntry, ...]:
    return tuple(FontEntry(fname=f"/{name}", name=name) for name in names)


def test_chinese_characters_get_the_shapes_of_the_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("Serif JP", "Sans JP", "Mono JP", "Sans KR", "Sans SC", "Serif SC")
    monkeypatch.setattr(fonts, "_regular_fonts", lambda: entries(*names))
    latin = frozenset(map(ord, "abc"))
    everything = frozenset(map(ord, "直で한abc"))
    monkeypatch.setattr(
        fonts, "_characters", lambda name: everything if name[1:] in names else latin
    )
    for text, family in (("直で", "Sans JP"), ("直한", "Sans KR"), ("直", "Sans SC")):
        assert fonts_for([text]) == ([DEFAULT, family], set())


def test_truetype_outlines_are_told_from_postscript(tmp_path: Path) -> None:
    files = {
        "t.ttf": b"\0\1\0\0rest",
        "o.otf": b"OTTOrest",
        # A collection whose second font is TrueType.
        "c.ttc": b"ttcf\0\1\0\0\0\0\0\2\0\0\0\x14\0\0\0\x18OTTO\0\1\0\0",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    asked = [("t.ttf", 0), ("o.otf", 0), ("c.ttc", 0), ("c.ttc", 1), ("none.ttf", 0)]
    found = [
        has_truetype_outlines(FontEntry(fname=str(tmp_path / name), index=index, name=name))
        for name, index in asked
    ]
    assert found == [True, False, False, True, False]


def test_fonts_of_packages_and_new_ones_of_the_system_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """matplotlib's own list of fonts is kept for good: a font installed later is not in it."""
    default = Path(font_manager.findfont(DEFAULT))
    bundle = tmp_path / "some_fonts"
    (bundle / "fonts").mkdir(parents=True)
    for folder, name in ((bundle / "fonts", "packed.ttf"), (tmp_path, "new.ttf")):
        (folder / name).write_bytes(default.read_bytes())
    (bundle / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    system = [str(tmp_path / "new.ttf"), str(tmp_path / "broken.ttf")]
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(fonts, "BUNDLES", ("some_fonts", "no_such_package"))
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: system)
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [])
    fonts._add_new_fonts()
    found = [Path(entry.fname).name for entry in font_manager.fontManager.ttflist]
    assert set(found) == {"packed.ttf", "new.ttf"}


def test_panels_share_labels_and_the_scale(figures: list[Figure]) -> None:
    rows, columns = ("x", "y"), ("a", "b", "c")
    values = [np.array([[0.31, 0.3, 0.2], [0.1, 0.2, 0.05]]) * scale for scale in (1, 2, 1, 1)]
    panels = [Panel(v, rows, columns, f"head {n}") for n, v in enumerate(values, 1)]
    heatmaps(panels, [], title="all")
    maps, bar = figures[0].axes[:4], figures[0].axes[4]
    for axes, value in zip(maps, values, strict=True):
        assert np.array_equal(axes.collections[0].get_array(), value)
        assert axes.collections[0].get_clim() == (0, pytest.approx(0.7))
    assert bar.get_ylim() == pytest.approx((0, 0.7))
    assert [bool(axes.get_xticklabels()) for axes in maps] == [True, True, False, False]
    assert [bool(axes.get_yticklabels()) for axes in maps] == [True, False, True, False]
    written = [text.get_text() for text in figures[0].texts]
    assert written == ["head 1", "head 2", "head 3", "head 4", "all"]
    with pytest.raises(ValueError, match="no panel"):
        heatmaps([], [])


def test_nothing_overlaps_and_nothing_is_cut_off(figures: list[Figure]) -> None:
    short, long = ("x", "y"), tuple(f"a very long label {n}" for n in range(7))
    panels = [
        *(Panel(weights(7, 2), long, short, "(a)"), Panel(weights(2, 7), short, long, "(b)")),
        *(Panel(weights(2, 2), short, short, "(c)"), Panel(weights(7, 7), long, long, "(d)")),
    ]
    heatmaps(panels, [], title="a title " * 3)
    figure = figures[0]
    heights = [text.get_position()[1] for text in figure.texts[:4]]
    assert heights[0] == heights[1] > heights[2] == heights[3]
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    boxes += [text.get_window_extent(renderer) for text in figure.texts]
    for number, box in enumerate(boxes):
        assert box.x0 >= 0 and box.y0 >= 0
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:number])


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_same_input_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    for name in ("a", "b"):
        heatmap(weights(2, 3), ["a", "b", "c"], ["x", "y"], tmp_path / f"{name}.{kind}", title="t")
    assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    assert b"CreationDate" not in (tmp_path / f"a.{kind}").read_bytes()


def test_a_pdf_holds_truetype_and_an_svg_says_what_it_shows(tmp_path: Path) -> None:
    labels = ["<b>&", "שלום", "c"]
    paths = [tmp_path / "map.pdf", tmp_path / "map.svg"]
    heatmaps([Panel(weights(2, 3), ["x", "y"], labels)], paths, title="one & two")
    pdf, svg = (path.read_bytes() for path in paths)
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    tree = ET.fromstring(svg)
    assert tree.findtext("{http://www.w3.org/2000/svg}title") == "one & two"
    description = tree.findtext(".//{http://purl.org/dc/elements/1.1/}description")
    assert description == "rows: x y; columns: <b>& שלום c"
    assert b"<text" not in svg
