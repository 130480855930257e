"""What a sentence costs to translate as it grows longer, and as more are decoded together.

python scripts/benchmark/decoding_scaling.py PICTURE.png [--quick]

A random Transformer (4+4 layers, d 128, feed-forward 256, 4 heads, 8,000 pieces), one thread,
processor time. Length: 10 to 1,000 source pieces and as many written, batches of at most 2,048
pieces. Batch: 1 to 256 sentences of 16 pieces. The least of two rounds.
"""

import sys
import time
from pathlib import Path

import matplotlib as mpl
import torch

from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.greedy import greedy_search
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.symbols import EOS

mpl.use("Agg")

from matplotlib import pyplot as plt

LENGTHS, BATCHES, VOCABULARY = [10, 30, 100, 300, 1000], [1, 4, 16, 64, 256], 8000
SEARCHES = {"beam 5": 5, "greedy": 1}


def main(picture: Path, quick: bool) -> None:
    """Print the figures and draw them."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = TransformerConfig(encoder_layers=4, decoder_layers=4, d_feedforward=256, dropout=0.0)
    model = build_model(config, VOCABULARY).eval()
    with torch.no_grad():
        model.output.weight[EOS] = 0  # never among the best: every search goes to its limit

    @torch.inference_mode()
    def cost(beam: int, sentences: int, pieces: int) -> float:
        """Milliseconds a sentence."""
        source = torch.randint(4, VOCABULARY, (sentences, pieces))
        limits = torch.full((sentences,), pieces)
        least = float("inf")
        for _ in range(2):
            start = time.process_time()
            encoded = model.encode(source, torch.ones_like(source, dtype=torch.bool))
            if beam == 1:
                greedy_search(model, encoded, max_lengths=limits, length_penalty=1.0)
            else:
                beam_search(model, encoded, beam=beam, max_lengths=limits, length_penalty=1.0)
            least = min(least, time.process_time() - start)
        return 1000 * least / sentences

    print("| search | of | ms a sentence | ms a piece |\n|---|---|---|---|")
    lengths = LENGTHS[:-2] if quick else LENGTHS
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, beam in SEARCHES.items():
        cost(beam, 16, 10)
        by_length = [cost(beam, max(1, min(64, 2048 // n)), n) / n for n in lengths]
        by_batch = [cost(beam, size, 16) for size in BATCHES]
        for n, each in zip(lengths, by_length, strict=True):
            print(f"| {name} | length {n} | {each * n:.1f} | {each:.3f} |", flush=True)
        for size, each in zip(BATCHES, by_batch, strict=True):
            print(
                f"| {name} | batch {size} | {each:.1f} ms a sentence | {each / 16:.3f} ms a piece |"
            )
        left.plot(lengths, by_length, marker="o", label=name)
        right.plot(BATCHES, by_batch, marker="o", label=name)
    left.set(xlabel="pieces of a sentence, read and written", ylabel="ms a piece", xscale="log")
    right.set(xlabel="sentences decoded together", ylabel="ms a sentence", xscale="log")
    for axes, ticks in ((left, lengths), (right, BATCHES)):
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend()
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(Path(sys.argv[1]), quick="--quick" in sys.argv)
