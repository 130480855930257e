"""How many sentences a second a search translates, on one thread, whatever the model says.

python scripts/benchmark/decoding.py [transformer|rnn]

A random model with 8,000 pieces (transformer: 4+4 layers, d 128, feed-forward 256, 4 heads; rnn:
the default); 512 random sentences of 16 pieces and EOS in batches of 64, and every hypothesis goes
on for 17 pieces. Processor time; loading is not counted.
"""

import sys
import time
from collections.abc import Callable

import torch

from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.greedy import greedy_search
from kakehashi.models.build import build_model
from kakehashi.models.config import ModelConfig, RNNConfig, TransformerConfig
from kakehashi.symbols import EOS

MODELS: dict[str, ModelConfig] = {
    "transformer": TransformerConfig(
        encoder_layers=4, decoder_layers=4, d_feedforward=256, dropout=0.0
    ),
    "rnn": RNNConfig(),
}
SENTENCES, BATCH, PIECES, VOCABULARY = 512, 64, 17, 8000


def speed(search: Callable[[torch.Tensor, torch.Tensor], object]) -> float:
    """Sentences a second of processor time."""
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(4, VOCABULARY, (SENTENCES, PIECES), generator=generator)
    source[:, -1] = EOS
    allowed = torch.ones_like(source, dtype=torch.bool)
    search(source[:BATCH], allowed[:BATCH])
    start = time.process_time()
    for first in range(0, SENTENCES, BATCH):
        search(source[first : first + BATCH], allowed[first : first + BATCH])
    return SENTENCES / (time.process_time() - start)


def main(name: str) -> None:
    """Print the figures of one model."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = build_model(MODELS[name], VOCABULARY).eval()
    with torch.no_grad():
        # Never the end: every search does the same work.
        model.output.silence[EOS] = -1e9
    limits = torch.full((BATCH,), PIECES)

    @torch.inference_mode()
    def greedy(source: torch.Tensor, allowed: torch.Tensor) -> object:
        encoded = model.encode(source, allowed)
        return greedy_search(model, encoded, max_lengths=limits, length_penalty=1.0)

    @torch.inference_mode()
    def beam(source: torch.Tensor, allowed: torch.Tensor) -> object:
        encoded = model.encode(source, allowed)
        return beam_search(model, encoded, beam=5, max_lengths=limits, length_penalty=1.0)

    print(f"{name}: greedy {speed(greedy):.0f} sentences/s, beam 5 {speed(beam):.0f} sentences/s")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "transformer")
