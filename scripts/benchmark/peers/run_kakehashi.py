"""Kakehashi, as its command searches: greedily without scores, which the others give none of.

On several threads a batch of its own for each.
"""

import sys
from functools import partial

import torch
from measuring import BATCH, BEAM, PIECES, SIZES, VOCABULARY, answer, sources
from torch import Tensor

from kakehashi.allocator import keep_freed_memory
from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.greedy import greedy_search
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.models.build import build_model
from kakehashi.models.config import ModelConfig, RNNConfig, TransformerConfig
from kakehashi.symbols import EOS


def config(size: str) -> ModelConfig:
    """The model's description."""
    if size == "rnn":
        return RNNConfig(d_embedding=128, d_hidden=256, d_attention=256, d_maxout=128)
    layers, width, feedforward, heads = SIZES[size]
    return TransformerConfig(
        encoder_layers=layers,
        decoder_layers=layers,
        d_model=width,
        d_feedforward=feedforward,
        n_heads=heads,
        bias=True,
        norm_position="post",
        dropout=0.0,
    )


def main(size: str, threads: int) -> None:
    """Answer to stdin."""
    keep_freed_memory()
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = build_model(config(size), VOCABULARY).eval()
    with torch.no_grad():
        model.output.weight[EOS] = 0  # never among the best: every hypothesis has 17 pieces
    batches = sources(EOS)

    engine = TorchEngine(model)

    @torch.inference_mode()
    def decode(kind: str, source: Tensor) -> list[list[Hypothesis]]:
        encoded = model.encode(source, torch.ones_like(source, dtype=torch.bool))
        limits = torch.full((len(source),), PIECES + 1)
        if kind == "beam":
            return beam_search(model, encoded, beam=BEAM, max_lengths=limits, length_penalty=1.0)
        return greedy_search(model, encoded, max_lengths=limits, length_penalty=1.0, scored=False)

    def search(kind: str) -> None:
        for source, found in zip(batches, engine.each(partial(decode, kind), batches), strict=True):
            assert len(found) == len(source) <= BATCH
            assert all(len(best[0].ids) == PIECES + 1 for best in found)

    answer(search)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
