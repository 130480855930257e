"""`kakehashi train resume=RUN`: words, settings, locks; and runs stopped from outside."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from tests.commands.test_train import QUICK, ROOT, files, kakehashi
from tests.training.states import curves, state_of

from kakehashi.commands.lock import held, is_held
from kakehashi.commands.resuming import check_unchanged, expand, quoted, record
from kakehashi.commands.train import train
from kakehashi.errors import ConfigError


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_any_path_comes_through_hydras_grammar(text):
    override = OverridesParser.create().parse_override(f"key={quoted(text)}")
    value = override.value()
    assert value == text


def made(folder: Path, words: list[str], settings: dict) -> Path:
    folder.mkdir(parents=True)
    record(folder, OmegaConf.create(settings), words)
    return folder


def test_a_run_is_composed_of_its_own_words_and_those_typed_now(tmp_path):
    folder = made(tmp_path / "a run", ["seed=2", "data.name='x ${seed}'"], {"seed": 2})
    words = expand([f"resume={folder}", "trainer.max_updates=9"])
    assert words[:3] == ["seed=2", "data.name='x ${seed}'", "trainer.max_updates=9"]
    assert f"hydra.run.dir='{folder}'" in words
    assert f"resume='{folder}'" in words
    assert expand(words) == words  # as another process of the run is given them
    assert expand(["seed=1", "resume=auto"]) == ["seed=1", "resume=auto"]
    link = tmp_path / "latest"
    link.symlink_to(folder, target_is_directory=True)
    assert expand([f"resume={link}", "trainer.max_updates=9"]) == words


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(ConfigError, match="there is no run in"):
        expand([f"resume={tmp_path}"])


def test_what_changed_is_named_with_both_values(tmp_path):
    before = {
        "seed": 2,
        "data": {"workers": 0, "root": "a"},
        "model": {"dropout": 0.1, "old": [1]},
        "trainer": {},
    }
    folder = made(tmp_path / "run", [], before)
    same = {**before, "data": {"workers": 4, "root": "b"}, "resume": "x"}
    check_unchanged(OmegaConf.create(same), folder, told=False)
    other = {"seed": 2, "data": before["data"], "model": {"dropout": 0.2, "new": None}}
    with pytest.raises(ConfigError) as error:
        check_unchanged(OmegaConf.create(other), folder, told=False)
    said = str(error.value)
    assert "model.dropout was 0.1 and is 0.2" in said
    assert "model.new was not there and is None" in said
    assert "model.old was [1] and is not there" in said
    assert "resume_changed=true" in said
    check_unchanged(OmegaConf.create(other), folder, told=True)


def test_the_optimiser_cannot_be_changed(tmp_path):
    folder = made(tmp_path / "run", [], {"trainer": {}, "optimizer": {"beta1": 0.9}})
    other = OmegaConf.create({"trainer": {}, "optimizer": {"beta1": 0.8}})
    with pytest.raises(ConfigError, match=r"optimizer.beta1 was 0.9 and is 0.8: the optimiser"):
        check_unchanged(other, folder, told=True)


def test_who_is_refused_touches_nothing(tmp_path, monkeypatch, capsys):
    """A second process that comes while the first has not written anything yet."""
    monkeypatch.setattr("kakehashi.commands.lock.PATIENCE", 1)
    monkeypatch.setattr(sys, "argv", ["kakehashi"])
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    with held(folder), pytest.raises(SystemExit) as end:
        train(["hydra.run.dir=run", "resume=auto"])
    assert end.value.code == 1
    assert "another process is training in" in capsys.readouterr().err
    assert folder.exists()


def test_words_of_a_refused_start_leave_no_trace(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kakehashi"])
    folder = made(tmp_path / "run", ["seed=2"], {"seed": 2, "trainer": {}})
    (folder / "checkpoints").mkdir()
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    monkeypatch.chdir(folder)
    for words in (["seed=7"], ["seed=7", "resume=auto"], ["optimizer.beta1=2"]):
        with pytest.raises(SystemExit):
            train([f"hydra.run.dir={quoted(str(folder))}", *words])
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before
    assert "Traceback" not in capsys.readouterr().err


def test_one_process_at_a_time(tmp_path):
    assert not is_held(tmp_path)
    with held(tmp_path):
        assert is_held(tmp_path)
        with pytest.raises(ConfigError, match="another process is training in"), held(tmp_path):
            pass
    assert not is_held(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_does_not_hold_the_lock_of_a_run_that_was_killed(tmp_path):
    ready, wait = os.pipe()
    run = os.fork()
    if not run:
        with held(tmp_path):
            if not os.fork():
                time.sleep(20)
                os._exit(0)
            os.write(wait, b"x")
            time.sleep(20)
        os._exit(0)
    os.read(ready, 1)
    assert is_held(tmp_path)
    os.kill(run, signal.SIGKILL)
    os.waitpid(run, 0)
    assert not is_held(tmp_path)


def start(folder: Path, *words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "kakehashi.commands.main", "train", *words],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        # what runs these tests may be a background job, which ignores Ctrl-C and passes that on
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def wait_for(path: Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 240
    while not path.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.02)


def same_run(one: Path, other: Path) -> None:
    name = "checkpoints/update-60.ckpt"
    assert state_of(one / name) == state_of(other / name)
    assert curves(one) == curves(other)
    for name in ("model/model.safetensors", "test_translations.txt"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


RUN = ["trainer=updates", "trainer.max_updates=60", "trainer.validate_every=20", "logger=csv"]


def test_a_run_that_was_stopped_goes_on(small_corpus, tmp_path):
    words = [*QUICK, *files(small_corpus), *RUN, "callbacks.save_minutes=0"]
    words += ["hydra.run.dir=part", "resume=auto"]
    run = tmp_path / "part"
    process = start(tmp_path, *words)
    wait_for(run / "checkpoints" / "update-20.ckpt", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert (out, "Traceback" in err) == ("", False)
    assert f"interrupted; to go on: kakehashi train resume={run}" in err
    done = kakehashi(tmp_path, "train", *words)
    assert done.returncode == 0, done.stderr
    assert "going on after update" in done.stderr


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_like_a_whole_one_and_says_that_it_is_finished(
    small_corpus, tmp_path
):
    folder = tmp_path / "a folder"
    folder.mkdir()
    words = [*QUICK, *files(small_corpus), *RUN, "callbacks.save_minutes=0"]
    words += ["hydra.run.dir=part", "resume=auto"]
    run = folder / "part"
    process = start(folder, *words)
    wait_for(run / "checkpoints" / "update-20.ckpt", process)
    process.send_signal(signal.SIGSTOP)
    second = kakehashi(folder, "train", *words)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert (out, "Traceback" in err) == ("", False)
    assert f"interrupted; to go on: kakehashi train resume='{run}'" in err
    # the same command while it ran, and with another setting afterwards
    assert second.returncode == 1
    assert "another process is training in" in second.stderr
    changed = kakehashi(folder, "train", "resume=part", "seed=5")
    assert changed.returncode == 1
    assert "seed was 1 and is 5" in changed.stderr
    done = kakehashi(folder, "train", *words)
    assert done.returncode == 0, done.stderr
    assert "going on after update" in done.stderr
    again = kakehashi(folder, "train", "resume=part")
    assert again.returncode == 0
    assert "is finished" in again.stderr
    assert again.stdout == done.stdout
    assert kakehashi(folder, "train", *words[:-2], "hydra.run.dir=whole").returncode == 0
    same_run(run, folder / "whole")


@pytest.mark.slow
def test_two_processes_go_on_where_they_were_killed(small_corpus, tmp_path):
    words = [
        *QUICK,
        *files(small_corpus),
        *RUN,
        "callbacks.save_minutes=0",
        "data.batch_tokens=200",
    ]
    words += ["trainer.devices=2", "trainer.strategy=ddp"]
    assert kakehashi(tmp_path, "train", *words, "hydra.run.dir=whole").returncode == 0
    words += ["hydra.run.dir=part", "resume=auto"]
    for stop, number in ((7, signal.SIGKILL), (20, signal.SIGTERM), (41, signal.SIGKILL)):
        process = start(tmp_path, *words)
        name = "update" if stop == 20 else "between"
        wait_for(tmp_path / "part" / "checkpoints" / f"{name}-{stop}.ckpt", process)
        if number == signal.SIGTERM:
            process.send_signal(number)
            _, err = process.communicate(timeout=120)
            assert process.returncode == 143, err
            assert err.count("stopped by SIGTERM; to go on") == 1
        else:
            found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            os.kill(int(found.split()[-1]), number)  # one of the two: the other notices
            process.communicate(timeout=120)
            assert process.returncode != 0
    done = kakehashi(tmp_path, "train", *words)
    assert done.returncode == 0, done.stderr
    same_run(tmp_path / "part", tmp_path / "whole")


@pytest.mark.slow
def test_torchrun_starts_a_run_again_when_one_of_its_processes_is_killed(small_corpus, tmp_path):
    words = [*QUICK, *files(small_corpus), *RUN, "callbacks.save_minutes=0", "resume=auto"]
    words += ["data.batch_tokens=200", "trainer.devices=2", "trainer.strategy=ddp"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    torchrun += ["--max-restarts=2", str(ROOT / "scripts" / "train.py"), *words]
    # what torchrun shares with the processes holds the addresses of those that are dead
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    log = tmp_path / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [*torchrun, "hydra.run.dir=part"], cwd=tmp_path, env=environment, stderr=stream
        )
    for stop in (20, 40):
        wait_for(tmp_path / "part" / "checkpoints" / f"update-{stop}.ckpt", process)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
    process.wait(timeout=400)
    said = log.read_text(encoding="utf-8")
    assert process.returncode == 0, said
    assert said.count("going on after update") == 2
    assert kakehashi(tmp_path, "train", *words, "hydra.run.dir=whole").returncode == 0
    same_run(tmp_path / "part", tmp_path / "whole")


@pytest.mark.slow
def test_a_full_disk_and_room_made_again(small_corpus, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    size = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(size, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        words = [*QUICK, *files(small_corpus), *RUN, "callbacks.save_minutes=0"]
        assert kakehashi(tmp_path, "train", *words, "hydra.run.dir=whole").returncode == 0
        words += [f"hydra.run.dir='{disk}/part'", "resume=auto"]
        filler = disk / "filler"
        process = start(tmp_path, *words)
        wait_for(disk / "part" / "checkpoints" / "update-20.ckpt", process)
        with filler.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
            while True:
                stream.write(bytes(4096))
        _, err = process.communicate(timeout=120)
        assert process.returncode == 1, err
        assert "No space left on device" in err
        assert "Traceback" not in err
        filler.unlink()
        done = kakehashi(tmp_path, "train", *words)
        assert done.returncode == 0, done.stderr
        same_run(disk / "part", tmp_path / "whole")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("content", ["\x00", "a: 1", "- 3", "- [", "word"])
def test_damaged_words_are_named(tmp_path, content):
    folder = made(tmp_path / "run", ["seed=2"], {"seed": 2, "trainer": {}})
    (folder / "overrides.yaml").write_text(content)
    with pytest.raises(ConfigError, match=r"overrides.yaml is damaged"):
        expand([f"resume={folder}"])
