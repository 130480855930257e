"""What each way to search costs beside a plain beam, on one thread, whatever the model says.

python scripts/benchmark/searches.py

A random model with 8,000 pieces (4+4 layers, d 128, feed-forward 256, 4 heads); 128 random
sentences of 17 pieces in batches of 64, and every hypothesis goes on for 18 pieces; processor time,
the faster of two turns. And chrF of all pairs of 64 samples of 12 words,
beside sacreBLEU's one pair at a time.
"""

import random
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from sacrebleu import sentence_chrf

from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.methods import BEAM, DiverseBeam, Sampling
from kakehashi.decoding.rules import Rules
from kakehashi.decoding.search import search
from kakehashi.evaluation.chrf import pairwise_chrf
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.symbols import EOS

MODEL = TransformerConfig(encoder_layers=4, decoder_layers=4, d_feedforward=256, dropout=0.0)
BATCH, PIECES, VOCABULARY = 64, 17, 8000
WORDS = ["the", "a", "bridge", "river", "crossed", "nobody", "old", "new", "letter", "house", "of"]
PLAIN = DecodingConfig(max_ratio=1.0, max_extra=1)
SEARCHES: dict[str, dict[str, object]] = {
    "greedy": {"config": replace(PLAIN, beam=1)},
    "beam 5": {},
    "beam 5, forbidden phrase": {"rules": Rules(forbidden=((7, 8),))},
    "beam 5, required phrase": {"rules": Rules(required=((7, 8),))},
    "beam 5, no trigram twice": {"config": replace(PLAIN, no_repeat_ngram=3)},
    "beam 5, coverage": {"config": replace(PLAIN, coverage_penalty=0.1)},
    "diverse beam, 5 groups": {"method": DiverseBeam(5)},
    "5 samples": {"method": Sampling(), "n_best": 5},
    "5 samples, top_p 0.9": {"method": Sampling(top_p=0.9), "n_best": 5},
}


def seconds(work: Callable[[], object]) -> float:
    """Processor time, the shorter of two turns."""
    turns = []
    for _ in range(2):
        start = time.process_time()
        work()
        turns.append(time.process_time() - start)
    return min(turns)


def main() -> None:
    """Print sentences a second of each search, and the two times of chrF."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = build_model(MODEL, VOCABULARY).eval()
    model.output.silence[EOS] = -1e9
    source = torch.randint(4, VOCABULARY, (BATCH, PIECES))
    allowed = torch.ones_like(source, dtype=torch.bool)
    for name, chosen in SEARCHES.items():
        options = {"config": PLAIN, "method": BEAM, "keys": range(BATCH)}
        options |= chosen
        if "rules" in options:
            options["rules"] = [options["rules"]] * BATCH

        @torch.inference_mode()
        def work(options: dict[str, object] = options) -> None:
            for _ in range(2):
                search(model, model.encode(source, allowed), **options)  # type: ignore[arg-type]

        print(f"{name}: {2 * BATCH / seconds(work):.0f} sentences/s")
    rng = random.Random(1)
    texts = [" ".join(rng.choices(WORDS, k=12)) for _ in range(64)]
    print(f"chrF of {64 * 64:,} pairs: {seconds(lambda: pairwise_chrf(texts, texts)):.3f} s")
    one = seconds(lambda: [[sentence_chrf(a, [b]) for b in texts] for a in texts])
    print(f"with sacreBLEU, one by one: {one:.3f} s")


if __name__ == "__main__":
    main()
