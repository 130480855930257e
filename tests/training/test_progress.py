"""The line that a waiting person sees."""

from types import SimpleNamespace

import torch

from kakehashi.training.plan import Plan
from kakehashi.training.progress import ProgressLine
from kakehashi.training.usage import peak
from kakehashi.training.validation import Validated


def test_the_line_says_it_all():
    line = ProgressLine(Plan(200, 0.1), None)
    line.loss = 3.456
    task = SimpleNamespace(tokens=5000, validated=Validated(2.0, 12.34), device=torch.device("cpu"))
    parts = line.text(50, task, 0.002).split(" · ")
    assert parts[0] == "50/200 updates"
    assert parts[1].endswith("tokens/s")
    assert parts[2:5] == ["nll 3.46", "lr 0.002", "BLEU 12.3"]
    taken = peak(torch.device("cpu"))
    assert taken is not None
    assert abs(float(parts[5].removesuffix(" GB")) - taken / 1e9) <= 0.06
    assert parts[6].endswith(" left")
