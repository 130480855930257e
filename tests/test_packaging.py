"""The wheel: what is in it, and that it works away from the repository."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, stdin: str | None = None) -> str:
    """Standard output of a command that has to succeed, in a clean environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV_"))}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        input=stdin,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    run(sys.executable, "-m", "pip", "wheel", *options, "-w", folder, ROOT, cwd=folder)
    (found,) = folder.glob("kakehashi-*.whl")
    return found


@pytest.fixture(scope="session")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel; third parties are borrowed from the running one.

    Only third parties: a path line in a .pth file does not process that folder's own .pth files,
    so the editable install of the repository stays out. scripts/check_wheel.sh borrows nothing.
    """
    folder = tmp_path_factory.mktemp("else where") / "environment"
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    packages = run(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
    )
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    Path(packages.strip(), "borrowed.pth").write_text("\n".join(sorted(borrowed)) + "\n")
    return folder / "bin"


def test_the_wheel_holds_the_package_its_configs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {
        path.relative_to(ROOT / "src").as_posix()  # Hydra finds its plugins by the folder's name
        for folder in ("kakehashi", "hydra_plugins")
        for path in (ROOT / "src" / folder).rglob("*.py")
    }
    configs = {
        f"kakehashi/configs/{path.relative_to(ROOT / 'configs').as_posix()}"
        for path in (ROOT / "configs").rglob("*.yaml")
    }
    assert "kakehashi/configs/train.yaml" in configs
    pages = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.suffix in (".html", ".js", ".css")
    }
    assert {"kakehashi/serving/page/index.html", "kakehashi/insight/explorer/viewer.js"} <= pages
    others = configs | pages | {"kakehashi/py.typed"}
    assert sources | others <= names
    metadata = {name for name in names if ".dist-info/" in name}
    assert names - sources - others == metadata
    assert any(name.endswith("/licenses/LICENSE") for name in metadata)


def test_the_metadata_names_lower_bounds_and_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {Path(name).name: name for name in archive.namelist() if ".dist-info/" in name}
        metadata = message_from_string(archive.read(names["METADATA"]).decode())
        commands = archive.read(names["entry_points.txt"]).decode()
    assert "kakehashi = kakehashi.commands.main:main" in commands
    required = metadata.get_all("Requires-Dist") or []
    assert any(line.startswith("torch>=") for line in required)
    assert not any("==" in line.split(";")[0] for line in required)


def test_the_installed_package_is_not_the_repository(elsewhere: Path, tmp_path: Path) -> None:
    script = "import kakehashi; print(kakehashi.__file__, kakehashi.__version__)"
    file, version = run(elsewhere / "python", "-c", script, cwd=tmp_path).rsplit(maxsplit=1)
    assert Path(file).is_relative_to(elsewhere.parent)
    assert version in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_installed_command_trains_and_translates_from_any_folder(
    elsewhere: Path, tmp_path: Path
) -> None:
    words = ["data=files", "name=mine", "data.source_language=de", "data.target_language=en"]
    words += [f"data.train.{side}={path}" for side, path in (("source", "s"), ("target", "t"))]
    words += ["data.valid_size=10", "data.test_size=10", "tokenizer.vocab_size=400"]
    corpus = ROOT / "tests" / "corpus"
    (tmp_path / "s").write_bytes((corpus / "small.de").read_bytes())
    (tmp_path / "t").write_bytes((corpus / "small.en").read_bytes())

    command = elsewhere / "kakehashi"
    summary = run(command, "train", *words, "debug=one_batch", cwd=tmp_path)
    assert "BLEU" in summary

    model = tmp_path / "runs" / "mine" / "latest"
    lines = run(command, "translate", model, "--beam", "1", cwd=tmp_path, stdin="Ja.\n\nNein.\n")
    assert lines.count("\n") == 3
    assert lines.split("\n")[1] == ""
