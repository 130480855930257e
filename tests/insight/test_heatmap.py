"""The picture is drawn whatever the labels hold, and shows what it is given."""

import logging
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image
from matplotlib.figure import Figure

from kakehashi.errors import ConfigError, DataError
from kakehashi.insight import heatmap as room
from kakehashi.insight.fonts import DEFAULT, fonts_for, install_hint
from kakehashi.insight.heatmap import heatmap


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
    assert np.array_equal(axes.images[0].get_array(), values)
    assert axes.get_title(loc="left") == "one head"
    assert image.imread(tmp_path / "map.png").shape[2] == 4


def test_labels_are_taken_literally(tmp_path: Path, figures: list[Figure]) -> None:
    labels = ["$5_$", "%x#", "{a}", "\\frac", "$\\alpha$", "</s>", "a\nb"]
    heatmap(weights(7, 7), labels, labels, tmp_path / "map.png")
    shown = [*labels[:-1], "ab"]
    assert texts(figures[0]) == (shown, shown)
    for label in figures[0].axes[0].get_xticklabels():
        assert not label.get_parse_math()


def test_the_picture_grows_with_the_text_up_to_a_limit(
    tmp_path: Path, figures: list[Figure]
) -> None:
    for size in (3, 30, 401):
        labels = [f"p{i}" for i in range(size)]
        heatmap(weights(2, size), labels, ["a", "b"], tmp_path / "map.svg")
    widths = [figure.get_size_inches()[0] for figure in figures]
    assert widths[1] == pytest.approx(10 * widths[0])
    assert widths[2] == pytest.approx(room.LARGEST)
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


def test_many_pictures_in_one_process_warn_of_nothing(tmp_path: Path) -> None:
    for number in range(23):
        heatmap(weights(1, 1), ["a"], ["b"], tmp_path / f"{number}.png")


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
    assert "fonts-noto-cjk" in caplog.text


def test_a_font_is_found_for_a_script_that_the_default_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from matplotlib.font_manager import FontEntry

    holds = {"/default": "ab", "/kana": "がで", "/cjk": "猫がで庭", "/rest": "🐶"}
    fonts = [FontEntry(fname=name, name=name[1:].title()) for name in holds if name != "/default"]
    monkeypatch.setattr("kakehashi.insight.fonts._regular_fonts", lambda: fonts)
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
    ("characters", "package"),
    [
        ("猫", "fonts-noto-cjk"),
        ("か", "fonts-noto-cjk"),
        ("한", "fonts-noto-cjk"),
        ("ฮ", "fonts-noto-core"),
    ],
)
def test_the_package_to_install(characters: str, package: str) -> None:
    assert package in install_hint(characters)
