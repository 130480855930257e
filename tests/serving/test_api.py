"""What each address answers, over a real socket, and how it refuses."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from tests.serving.conftest import Reverser

from kakehashi.decoding.methods import Sampling
from kakehashi.errors import ConfigError
from kakehashi.inference.options import Options
from kakehashi.inference.request import Request
from kakehashi.serving import guard
from kakehashi.serving.schema import Answer, Attended
from kakehashi.serving.server import Connection
from kakehashi.serving.tasks import Task, Text, Translating

HELLO = {"texts": ["abc"]}


def test_each_task(small: Any) -> None:
    reply = small.ask("/translate", {"texts": ["ab cd", ""], "n_best": 2, "details": True})
    assert reply.status == 200
    first, second = reply.json["translations"]
    assert first["text"] == "ba dc" and second["text"] == ""
    assert [one["text"] for one in first["candidates"]] == ["ba dc", "ba dc 1"]
    assert first["candidates"][0]["words"][1] == {"text": "dc", "probability": 0.4, "source": [1]}
    pairs = {"pairs": [{"source": "ab", "target": "c"}, {"source": "", "target": "defg"}]}
    scores = small.ask("/score", pairs).json["scores"]
    assert [one["log_probability"] for one in scores] == [-3, -4]
    alignments = small.ask("/align", pairs).json["alignments"]
    assert [one["target_words"] for one in alignments] == [["c"], ["defg"]]


def test_facts(small: Any) -> None:
    assert small.ask("/health").json == {"status": "ok", "waiting": 0}
    assert small.ask("/model").json["card"].startswith("# A card")
    schema = small.ask("/openapi.json").json
    assert {"/translate", "/score", "/align", "/health", "/model"} <= set(schema["paths"])
    every = {"200", "400", "405", "408", "413", "415", "421", "422", "500", "503", "504"}
    for path in ("/translate", "/score", "/align", "/attention"):
        assert set(schema["paths"][path]["post"]["responses"]) == every
    for path in ("/health", "/model", "/metrics"):
        assert list(schema["paths"][path]) == ["get"]
        assert {"200", "405", "421", "503"} <= set(schema["paths"][path]["get"]["responses"])
    page = small.ask("/")
    assert page.status == 200 and page.headers["content-type"] == "text/html; charset=utf-8"


def test_head_is_answered_wherever_get_is(small: Any) -> None:
    for path in ("/", "/health", "/model", "/metrics", "/openapi.json"):
        connection = http.client.HTTPConnection("127.0.0.1", small.port, timeout=20)
        connection.request("HEAD", path)
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
        length = len(small.ask(path).content)
        if path != "/metrics":
            assert response.getheader("content-length") == str(length)
        connection.close()


def test_a_body_far_too_large_is_answered(small: Any) -> None:
    reply = small.ask("/translate", b"a" * (8 << 20))
    assert reply.status == 413 and "2,000 bytes" in reply.error


def test_options_reach_the_model_and_separate_batches(small: Any, reverser: Any) -> None:
    given = {"beam": 3, "n_best": 2, "length_penalty": 0.5, "details": True, "min_ratio": 0.5}
    given |= {"coverage_penalty": 0.2, "no_repeat_ngram": 3, "repetition_penalty": 2}
    ruled = {"text": "b", "prefix": "x", "required": ["y"], "forbidden": ["z"]}
    assert small.ask("/translate", {"texts": ["a", ruled], **given}).status == 200
    task, texts = reverser.batches[-1]
    assert task == Translating(Options(**given))
    assert texts == [Request("a"), Request("b", "x", ("y",), ("z",))]
    drawn = {"sampling": {"temperature": 0.5, "top_k": 9, "seed": 7}}
    assert small.ask("/translate", {"texts": ["a"], **drawn}).status == 200
    method = Sampling(temperature=0.5, top_k=9, seed=7)
    assert reverser.batches[-1][0] == Translating(Options(method=method))


@pytest.mark.parametrize(
    ("question", "status", "words"),
    [
        (b"{", 422, ["not JSON", "character 1"]),
        (b"\xff\xfe\xfa", 422, ["body", "UTF-8"]),
        (b"[" * 1500, 422, ["body", "nested"]),
        (b'{"texts": ["a"], "beam": ' + b"1" * 1500 + b"}", 422, ["beam"]),
        ([], 422, ["the body"]),
        ({}, 422, ["texts", "required"]),
        ({"texts": []}, 422, ["texts", "1 item"]),
        ({"texts": "abc"}, 422, ["texts", "list"]),
        ({"texts": ["a", 7]}, 422, ["texts[1]", "string"]),
        ({"texts": [{"text": "a", "prefix": "b" * 51}]}, 413, ["text 1", "51"]),
        ({"texts": [{"text": "a", "required": ["b"] * 9}]}, 422, ["required", "8 items"]),
        ({"texts": ["a"], "sampling": {"temperature": 0}}, 422, ["sampling.temperature"]),
        ({"texts": ["a"], "beams": 2}, 422, ["beams", "not permitted"]),
        ({"texts": ["a"], "b" * 1500: 2}, 422, ["b" * 40 + "...: extra"]),
        ({"texts": ["a"], "min_ratio": 1.6}, 422, ["min_ratio", "1.5"]),
        ({"texts": ["a"], "beam": 0}, 422, ["beam", "greater"]),
        ({"texts": ["a"], "beam": "2"}, 422, ["beam", "integer"]),
        ({"texts": ["a"], "beam": True}, 422, ["beam", "integer"]),
        ({"texts": ["a"], "beam": 5}, 422, ["up to 4"]),
        (b'{"texts": ["a"], "length_penalty": NaN}', 422, ["length_penalty", "number"]),
        ({"texts": ["a"] * 5}, 413, ["5 texts", "4"]),
        ({"texts": ["a", "b" * 51]}, 413, ["text 2", "51", "50"]),
        ({"texts": ["a" * 2000]}, 413, ["2,000 bytes"]),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    small: Any, reverser: Any, question: Any, status: int, words: list[str]
) -> None:
    reply = small.ask("/translate", question)
    assert reply.status == status, reply.content
    assert all(word in reply.error for word in words), reply.error
    assert not reverser.batches
    assert small.ask("/translate", HELLO).status == 200


def test_pairs_are_checked_too(small: Any) -> None:
    assert (
        small.ask("/score", {"pairs": [{"source": "a"}]}).error == "pairs[0].target: field required"
    )
    assert small.ask("/align", {"pairs": [{"source": "a", "target": "b" * 51}]}).status == 413


def test_nothing_else_is_there(small: Any) -> None:
    for path in ("/docs", "/../pyproject.toml", "/page/script.js", "/%2e%2e/etc/passwd", "//etc"):
        assert small.ask(path).status == 404
    assert small.ask("/translate").status == 405
    assert "application/json" in small.ask("/translate", b"x", {"Content-Type": "text/plain"}).error


def test_a_body_without_a_length_is_cut_off_where_it_is_too_long(small: Any) -> None:
    head = (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", small.port), timeout=10) as client:
        client.sendall(head)
        for _ in range(6):  # of a body that would never end
            client.sendall(b"190\r\n" + b"a" * 400 + b"\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")


def test_names(running: Any, reverser: Any) -> None:
    with running(reverser, names=["Translate.Example:8000", "Foo."]) as served:
        for host in (
            "localhost:1",
            "127.0.0.1",
            "[::1]:80",
            "translate.example:8000",
            "foo",
            "10.0.0.7",
        ):
            assert served.ask("/health", headers={"Host": host}).status == 200
        for host in ("evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example"):
            assert served.ask("/health", headers={"Host": host}).status == 421
        assert served.ask("/translate", HELLO, {"Host": "evil.example"}).status == 421


def test_security_headers_are_on_everything(small: Any) -> None:
    for reply in (
        small.ask("/"),
        small.ask("/health"),
        small.ask("/nothing"),
        small.ask("/translate", b"{"),
        small.ask("/translate", b"a" * 3000),
        small.ask("/health", headers={"Host": "evil.example"}),
    ):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert "access-control-allow-origin" not in reply.headers
        assert "server" not in reply.headers


def test_an_error_of_one_request_is_not_the_others(
    running: Any, reverser: Any, caplog: pytest.LogCaptureFixture
) -> None:
    reverser.broken = RuntimeError("secret")
    reverser.gate.clear()
    with running(reverser) as served, ThreadPoolExecutor() as pool:
        first = pool.submit(served.ask, "/translate", HELLO)
        assert reverser.begun.wait(10)
        texts = ["one", "!", "two"]
        replies = [pool.submit(served.ask, "/translate", {"texts": [text]}) for text in texts]
        served.wait(lambda: len(served.service.waiting) == 3)
        reverser.gate.set()
        assert first.result().status == 200
        assert [reply.result().status for reply in replies] == [200, 500, 200]
        assert "secret" not in replies[1].result().error
        assert "secret" in caplog.text
        reverser.broken = ConfigError("a beam of 9 is too much")
        refused = served.ask("/translate", {"texts": ["!"]})
        assert (refused.status, refused.error) == (400, "a beam of 9 is too much")


def test_overload_is_refused_at_once_and_everything_else_goes_on(
    running: Any, reverser: Any
) -> None:
    reverser.gate.clear()
    with running(reverser, lines=3, queue=4) as served, ThreadPoolExecutor() as pool:
        begun = pool.submit(served.ask, "/translate", HELLO)
        assert reverser.begun.wait(10)
        queued = pool.submit(served.ask, "/translate", {"texts": ["ab", "cd", "ef"]})
        served.wait(lambda: len(served.service.waiting) == 3)
        refused = served.ask("/translate", {"texts": ["gh", "ij"]})
        assert refused.status == 503
        assert int(refused.headers["retry-after"]) >= 1
        assert "3 sentences wait" in refused.error
        assert served.ask("/health").json == {"status": "ok", "waiting": 3}
        metrics = served.ask("/metrics").content.decode()
        assert "kakehashi_queue_sentences 3.0" in metrics
        assert 'kakehashi_errors_total{cause="overloaded"} 1.0' in metrics
        reverser.gate.set()
        assert begun.result().status == queued.result().status == 200


@dataclass
class Slow(Reverser):
    """A model that takes a hundredth of a second for each sentence."""

    def run(self, task: Task, texts: Sequence[Text]) -> list[Answer]:
        time.sleep(0.01 * len(texts))
        return super().run(task, texts)


def test_under_overload_what_can_be_served_in_time_is(running: Any) -> None:
    backend = Slow()
    backend.gate.set()
    limits = {"lines": 16, "queue": 512, "together": 16, "seconds": 1.0}
    with running(backend, **limits) as served, ThreadPoolExecutor(32) as pool:
        question = {"texts": ["a sentence"] * 16}  # 0.16 s each: six of 32 in a second
        replies = list(pool.map(lambda _: served.ask("/translate", question), range(32)))
    statuses = [reply.status for reply in replies]
    assert statuses.count(200) >= 3
    assert statuses.count(503) >= 20
    assert statuses.count(504) <= 2  # those for which the estimate was wrong


def test_work_is_bounded_by_pieces_and_hypotheses(running: Any, reverser: Any) -> None:
    with running(reverser, work=20) as served:
        reply = served.ask("/translate", {"texts": ["a", "b" * 20]})
        assert reply.status == 413
        assert all(word in reply.error for word in ("text 2", "21 pieces", "20 are allowed"))
        assert served.ask("/translate", {"texts": ["b" * 19]}).status == 200


def test_what_is_looked_at_is_bounded_more_closely_and_waits_like_the_rest(
    running: Any, reverser: Any
) -> None:
    reverser._answer = lambda task, text: Attended(scenes=[{"text": text.text}])
    with running(reverser, work=20, attention=10) as served, ThreadPoolExecutor() as pool:
        reply = served.ask("/attention", {"text": "b" * 10})
        assert reply.status == 413
        assert all(word in reply.error for word in ("11 pieces", "10 are allowed", "every weight"))
        reverser.gate.clear()
        begun = pool.submit(served.ask, "/attention", {"text": "b" * 9})
        assert reverser.begun.wait(10)
        later = pool.submit(served.ask, "/attention", {"text": "c"})
        served.wait(lambda: len(served.service.waiting) == 1)
        reverser.gate.set()
        assert begun.result().json == {"scenes": [{"text": "b" * 9}]}
        assert later.result().json == {"scenes": [{"text": "c"}]}


def test_who_waits_too_long_is_told_and_the_work_is_dropped(running: Any, reverser: Any) -> None:
    reverser.gate.clear()
    with running(reverser, seconds=0.2) as served, ThreadPoolExecutor() as pool:
        begun = pool.submit(served.ask, "/translate", HELLO)
        assert reverser.begun.wait(10)
        late = served.ask("/translate", {"texts": ["late"]})
        assert late.status == 504 and "0.2 s" in late.error
        assert begun.result().status == 504
        assert len(served.service.waiting) == 0
        reverser.gate.set()
        assert served.ask("/translate", {"texts": ["next"]}).status == 200
    assert [texts for _, texts in reverser.batches] == [[Request("abc")], [Request("next")]]


def test_work_of_a_client_that_has_gone_is_dropped(running: Any, reverser: Any) -> None:
    reverser.gate.clear()
    with running(reverser) as served, ThreadPoolExecutor() as pool:
        begun = pool.submit(served.ask, "/translate", HELLO)
        assert reverser.begun.wait(10)
        body = json.dumps({"texts": ["nobody", "waits"]}).encode()
        head = (
            "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            client.sendall(head.encode() + body)
            served.wait(lambda: len(served.service.waiting) == 2)
        served.wait(lambda: len(served.service.waiting) == 0)
        reverser.gate.set()
        assert begun.result().status == 200
    assert [texts for _, texts in reverser.batches] == [[Request("abc")]]


def test_a_slow_body_is_not_waited_for(running: Any, reverser: Any) -> None:
    with (
        running(reverser, seconds=0.2) as served,
        socket.create_connection(("127.0.0.1", served.port)) as client,
    ):
        client.sendall(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
        )
        assert client.recv(100).startswith(b"HTTP/1.1 408 ")


def test_metrics_count_what_happened(small: Any) -> None:
    for _ in range(3):
        small.ask("/translate", {"texts": ["a", "b"]})
    small.ask("/translate", b"{")
    small.ask("/secret-text-in-a-path")
    text = small.ask("/metrics").content.decode()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines['kakehashi_requests_total{path="/translate",status="200"}'] == "3.0"
    assert lines['kakehashi_requests_total{path="/translate",status="422"}'] == "1.0"
    assert lines['kakehashi_sentences_total{task="translating"}'] == "6.0"
    assert lines["kakehashi_batch_sentences_sum"] == "6.0"
    assert lines['kakehashi_request_seconds_count{path="/translate"}'] == "4.0"
    assert "secret" not in text


def test_a_stop_finishes_what_has_come(running: Any, reverser: Any) -> None:
    reverser.gate.clear()
    with running(reverser) as served, ThreadPoolExecutor() as pool:
        asked = [pool.submit(served.ask, "/translate", {"texts": [f"{n}"]}) for n in range(3)]
        begun = reverser.batches
        served.wait(
            lambda: len(served.service.waiting) + sum(len(texts) for _, texts in begun) == 3
        )
        served.server.handle_exit(15, None)
        threading.Timer(0.3, reverser.gate.set).start()
        assert [reply.result().status for reply in asked] == [200] * 3
    assert served.service.stopping.dropped == 0


def test_a_stop_waits_no_longer_than_its_grace(running: Any, reverser: Any) -> None:
    reverser.gate.clear()
    with running(reverser, grace=1) as served, ThreadPoolExecutor() as pool:
        asked = pool.submit(served.ask, "/translate", HELLO)
        assert reverser.begun.wait(10)
        served.server.handle_exit(15, None)
        reply = asked.result(10)
        reverser.gate.set()
        assert reply.status == 503 and "stops" in reply.error
    assert served.service.stopping.dropped == 1


HALF = (
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
)


def answered(client: socket.socket) -> bytes:
    """All that still comes."""
    client.settimeout(10)
    return b"".join(iter(lambda: client.recv(4096), b""))


def test_the_end_is_told_to_who_has_sent_half_a_request(
    running: Any, reverser: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        running(reverser, grace=0.3, seconds=20) as served,
        socket.create_connection(("127.0.0.1", served.port)) as client,
    ):
        client.sendall(HALF)
        served.wait(lambda: len(served.server.server_state.tasks) == 1)
        served.server.handle_exit(15, None)
        answer = answered(client)
        assert answer.startswith(b"HTTP/1.1 503 ") and b"stops" in answer
    assert served.service.stopping.dropped == 1
    assert "Traceback" not in caplog.text


def test_a_second_signal_gives_up_in_good_order(
    running: Any, reverser: Any, caplog: pytest.LogCaptureFixture
) -> None:
    reverser.gate.clear()
    with running(reverser, grace=20) as served, ThreadPoolExecutor() as pool:
        asked = [pool.submit(served.ask, "/translate", {"texts": [f"{n}"]}) for n in range(5)]
        begun = reverser.batches
        served.wait(
            lambda: len(served.service.waiting) + sum(len(texts) for _, texts in begun) == 5
        )
        served.server.handle_exit(15, None)
        served.wait(lambda: not served.server.servers[0].is_serving())
        served.server.handle_exit(15, None)
        replies = [one.result(10) for one in asked]
        assert [reply.status for reply in replies] == [503] * 5
        assert all("stops" in reply.error for reply in replies)
        reverser.gate.set()
    assert served.service.stopping.dropped == 5
    assert "Traceback" not in caplog.text


def test_a_connection_without_a_request_is_closed(
    running: Any, reverser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "head", 0.3)
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    with running(reverser) as served:
        for first in (b"", b"GET / HT", get):
            with socket.create_connection(("127.0.0.1", served.port)) as client:
                client.sendall(first)
                assert answered(client) == b""
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            client.sendall(get + b"\r\n" + get)  # a request, and half of another one
            assert answered(client).startswith(b"HTTP/1.1 200 ")
        reverser.gate.clear()  # an answer may take longer
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            body = json.dumps(HELLO).encode()
            client.sendall(HALF.replace(b"99", b"%d" % len(body))[:-1] + body)
            threading.Timer(0.6, reverser.gate.set).start()
            client.settimeout(10)
            assert client.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_too_many_requests_at_once_are_refused_as_all_others(
    running: Any, reverser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_AT_ONCE", 1)
    reverser.gate.clear()
    with running(reverser) as served, ThreadPoolExecutor() as pool:
        first = pool.submit(served.ask, "/translate", HELLO)
        assert reverser.begun.wait(10)
        refused = served.ask("/health")
        assert refused.status == 503 and "under way" in refused.error
        assert refused.headers["retry-after"] == "1"
        reverser.gate.set()
        assert first.result().status == 200
        served.wait(lambda: served.ask("/health").status == 200)
        metrics = served.ask("/metrics").content.decode()
    assert 'path="/health",status="503"' in metrics
