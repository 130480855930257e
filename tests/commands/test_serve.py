"""`kakehashi serve`: it says where it is, answers, and ends when it is told to."""

import http.client
import os
import re
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_until_a_signal(kakehashi: Any, model_folder: Path) -> None:
    port = free_port()
    statuses = []

    def use_and_stop() -> None:
        # listening begins before the model is loaded: the first request waits for it
        for _ in range(200):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                connection.request(
                    "POST",
                    "/translate",
                    '{"texts": ["Der Hund schläft."]}'.encode(),
                    {"Content-Type": "application/json"},
                )
                statuses.append(connection.getresponse().status)
                connection.close()
                break
            except ConnectionRefusedError:
                threading.Event().wait(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=use_and_stop).start()
    ended = kakehashi("serve", model_folder, "--port", port, "--threads", 1)
    assert statuses == [200]
    assert (ended.status, ended.out) == (0, b"")
    said = ended.err.splitlines()
    assert said == [
        f"de to en at http://127.0.0.1:{port}/, until Ctrl-C",
        "stopped; every request was answered",
    ]


def test_a_port_that_is_taken(kakehashi: Any, model_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = kakehashi("serve", model_folder, "--port", port)
    assert ended.status == 1
    assert re.fullmatch(rf"error: cannot listen at 127.0.0.1, port {port}: .*\n", ended.err)


def test_what_cannot_be_is_said_before_anything_listens(kakehashi: Any, model_folder: Path) -> None:
    ended = kakehashi("serve", model_folder, "--queue", 3, "--max-lines", 4, "--port", 0)
    assert ended.status == 1 and "3 sentences" in ended.err and "4 lines" in ended.err
    for option in ("--grace", "--timeout"):
        ended = kakehashi("serve", model_folder, option, "inf", "--port", 0)
        assert ended.status == 1
        assert ended.err == f"error: {option} is inf; it must be a number of seconds\n"
    ended = kakehashi("serve", model_folder, "--host", "nowhere.invalid", "--port", 0)
    assert ended.status == 1 and "cannot listen at nowhere.invalid" in ended.err
    ended = kakehashi("serve", model_folder.parent / "none", "--port", 0)
    assert ended.status == 1 and "there is no model folder" in ended.err


def test_without_the_extra(
    kakehashi: Any, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    ended = kakehashi("serve", model_folder)
    assert ended.status == 1
    assert "fastapi" in ended.err and "pip install 'kakehashi[serve]'" in ended.err


def test_half_a_request_at_the_end_is_refused_and_counted(
    kakehashi: Any, model_folder: Path
) -> None:
    port = free_port()
    answers = []

    def begin_and_stop() -> None:
        for _ in range(200):
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                    client.sendall(
                        b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
                        b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
                        b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
                    )
                    client.recv(4096)
                    os.kill(os.getpid(), signal.SIGTERM)
                    answers.append(b"".join(iter(lambda: client.recv(4096), b"")))
                break
            except ConnectionRefusedError:
                threading.Event().wait(0.05)

    threading.Thread(target=begin_and_stop).start()
    ended = kakehashi("serve", model_folder, "--port", port, "--threads", 1, "--grace", 1)
    assert b"HTTP/1.1 503 " in answers[0]
    assert ended.status == 1
    assert ended.err.splitlines()[1:] == ["error: stopped before 1 request could be answered"]
