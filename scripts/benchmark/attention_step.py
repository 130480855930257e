"""At which step of the decoder, and in which layer, attention points at the word that is written.

python scripts/benchmark/attention_step.py RUN

Words of the run's test split that are the same in source and reference, once in each, and are a
figure or begin with a capital (names, mostly), three letters at least. The model reads the
references; printed is how often the source word with most attention is the right one, at the step
that writes the word, at the step after it, whose input it is, and for both added.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from kakehashi.commands.config import read_config
from kakehashi.commands.saved import saved_config
from kakehashi.data.corpora import load_corpus
from kakehashi.inference.links import word_spans
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator


def main(run: Path) -> None:
    """Print a row for each layer."""
    test = load_corpus(read_config(saved_config(run)).data).test
    translator = Translator.load(run / "model")
    engine, tokenizer = translator.engine, translator.tokenizer
    assert isinstance(engine, TorchEngine)
    right, number = Counter[tuple[int, str]](), 0
    for source, reference in zip(test.source, test.target, strict=True):
        spans, words = _words(source), _words(reference)
        same = [w for w in words if len(w) > 2 and (w[0].isupper() or w.isdigit()) and w in spans]
        if not same:
            continue
        pieces, written = tokenizer.encode_spans(source), tokenizer.encode_spans(reference)
        maps = engine.maps(tokenizer.encode(source), tokenizer.encode(reference)).cross
        for word in same:
            number += 1
            steps = [at for at, (b, e) in enumerate(written) if _meet((b, e), words[word])]
            right_pieces = {at for at, span in enumerate(pieces) if _meet(span, spans[word])}
            for layer, attention in enumerate(maps):
                looks = attention[0].mean(0)[:, :-1].numpy()
                now, after = looks[steps].sum(0), looks[[at + 1 for at in steps]].sum(0)
                for name, look in (("writes", now), ("after", after), ("both", now + after)):
                    right[layer, name] += int(np.argmax(look)) in right_pieces
    print(f"{number} words")
    for (layer, name), count in sorted(right.items()):
        print(f"layer {layer}  {name:6}  {count / number:.3f}")


def _words(text: str) -> dict[str, tuple[int, int]]:
    """The words that occur once in a text, and where."""
    spans = word_spans(text)
    count = Counter(text[start:end] for start, end in spans)
    return {text[b:e]: (b, e) for b, e in spans if count[text[b:e]] == 1}


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
