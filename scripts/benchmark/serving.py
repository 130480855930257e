"""A service under load on this machine: what it answers, what it holds, how it refuses.

python scripts/benchmark/serving.py MODEL [--requests 10000] [--clients 32] [--beam 1] [--threads 1]

Starts `kakehashi serve` anew for each part, on a free port, with clients in this process:

1. Distinct sentences, one a request: every answer is compared with that of the translator, which
   has every 20th sentence alone, and the service's resident memory is read after a tenth of the
   requests and at the end.
2. The same load with and without batching (`--batch-size 1`), in turns.
3. More clients than a short queue has room for: statuses, and how fast a refusal comes.
"""

import argparse
import http.client
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from kakehashi.inference.options import Options
from kakehashi.inference.translation import Translation
from kakehashi.inference.translator import Translator

WORDS = """der die das ein eine alte neue kleine große Hund Katze Haus Brücke Stadt Frau Mann Kind
Buch Zug Wasser Brot Garten Regen Sonne schläft trinkt sieht kauft öffnet liest bleibt kommt geht
heute morgen nie oft hier dort schnell langsam und aber nicht sehr"""


@dataclass(frozen=True)
class Answered:
    """What became of a request."""

    number: int
    status: int
    seconds: float
    body: dict[str, Any]


def sentences(count: int) -> list[str]:
    """Distinct ones, of 2 to 10 words."""
    dice = random.Random(1)
    return [
        f"{' '.join(dice.choices(WORDS.split(), k=dice.randint(2, 10)))} {number}."
        for number in range(count)
    ]


@contextmanager
def service(model: Path, *words: object) -> Iterator[tuple[int, int]]:
    """The port and the process number of a service, which has to end well."""
    command = [sys.executable, "-m", "kakehashi.commands.main", "serve", model, "--port", 0]
    process = subprocess.Popen(
        [str(word) for word in (*command, *words)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r":(\d+)/", line)
    if found is None:
        raise SystemExit(line + process.stderr.read())
    try:
        yield int(found[1]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        print(f"  ended with status {process.returncode}: {said.strip()}")


def load(
    port: int, texts: Sequence[str], clients: int, beam: int, first: int = 0
) -> list[Answered]:
    """A request for each text, by so many clients at a time, each on its own connection."""
    numbers = iter(range(len(texts)))
    lock = threading.Lock()
    found: list[Answered] = []

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                connection.close()
                return
            body = json.dumps({"texts": [texts[number]], "beam": beam})
            start = time.perf_counter()
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = json.loads(response.read())
            taken = time.perf_counter() - start
            found.append(Answered(first + number, response.status, taken, content))

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def memory(process: int) -> float:
    """MB of it that are in memory."""
    status = Path(f"/proc/{process}/status").read_text("ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def said(seconds: Sequence[float]) -> str:
    """The median and the 99th percentile."""
    return (
        f"median {1e3 * median(seconds):.1f} ms, 99 % {1e3 * quantiles(seconds, n=100)[98]:.1f} ms"
    )


def right(options: argparse.Namespace) -> None:
    """Part 1."""
    texts = sentences(options.requests)
    warm = options.requests // 10
    words = ("--threads", options.threads)
    with service(options.model, *words) as (port, process):
        start = time.perf_counter()
        found = load(port, texts[:warm], options.clients, options.beam)
        before = memory(process)
        found += load(port, texts[warm:], options.clients, options.beam, warm)
        taken = time.perf_counter() - start
        after = memory(process)
    print(f"  {len(found):,} requests in {taken:.1f} s, {len(found) / taken:.0f} a second")
    statuses = dict(Counter(one.status for one in found))
    print(f"  statuses {statuses}; {said([one.seconds for one in found])}")
    print(f"  memory {before:.0f} MB after {warm:,} requests, {after:.0f} MB at the end")
    translator = Translator.load(options.model)
    expected = translator.translate(texts, Options(beam=options.beam))
    alone = range(0, len(texts), 20)
    for number in alone:
        (expected[number],) = translator.translate([texts[number]], Options(beam=options.beam))
    wrong = [one for one in found if not _same(one, expected[one.number])]
    lost = set(range(len(texts))) - {one.number for one in found}
    print(f"  lost {len(lost)}, other than expected {len(wrong)} ({len(alone):,} compared alone)")


def _same(one: Answered, expected: Translation) -> bool:
    (got,) = one.body["translations"]
    return bool(got["text"] == expected.text and abs(got["score"] - expected.score) < 1e-4)


def batching(options: argparse.Namespace) -> None:
    """Part 2."""
    texts = sentences(options.requests // 20)
    for turn in range(2):
        for size in (64, 1):
            with service(options.model, "--batch-size", size, "--threads", options.threads) as (
                port,
                _,
            ):
                load(port, texts[:100], options.clients, options.beam)
                start = time.perf_counter()
                found = load(port, texts, options.clients, options.beam)
                taken = time.perf_counter() - start
            print(
                f"  turn {turn + 1}, batches of up to {size}: {len(found) / taken:.0f} sentences a "
                f"second; {said([one.seconds for one in found])}"
            )


def overloaded(options: argparse.Namespace) -> None:
    """Part 3."""
    texts = sentences(options.requests // 5)
    room = max(2, options.clients // 4)
    words = ("--queue", room, "--max-lines", room, "--batch-size", 2, "--threads", options.threads)
    with service(options.model, *words) as (port, _):
        pings: list[float] = []
        over = threading.Event()

        def ping() -> None:
            while not over.wait(0.05):
                start = time.perf_counter()
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("GET", "/health")
                assert connection.getresponse().status == 200
                connection.close()
                pings.append(time.perf_counter() - start)

        pinging = threading.Thread(target=ping)
        pinging.start()
        found = load(port, texts, options.clients, options.beam)
        over.set()
        pinging.join()
        after = load(port, texts[:20], 1, options.beam)
    print(f"  queue of {room}, {options.clients} clients that ask again at once")
    for status in sorted({one.status for one in found}):
        some = [one.seconds for one in found if one.status == status]
        print(f"  status {status}: {len(some):,}, {said(some)}")
    print(f"  /health meanwhile: {len(pings):,}, {said(pings)}")
    print(f"  and afterwards: {dict(Counter(one.status for one in after))}")


def main() -> None:
    """Run the three parts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("model", type=Path)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for title, part in (
        ("each its own answer", right),
        ("with and without batching", batching),
        ("overloaded", overloaded),
    ):
        print(f"{title}:", flush=True)
        part(options)


if __name__ == "__main__":
    main()
