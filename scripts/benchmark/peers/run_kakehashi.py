"""Kakehashi, as its command searches: greedily without scores, which the others give none of."""

import sys

import torch
from measuring import BATCH, BEAM, PIECES, SIZES, VOCABULARY, answer, sources

from kakehashi.allocator import keep_freed_memory
from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.greedy import greedy_search
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

    @torch.inference_mode()
    def search(kind: str) -> None:
        for source in batches:
            encoded = model.encode(source, torch.ones_like(source, dtype=torch.bool))
            limits = torch.full((len(source),), PIECES + 1)
            if kind == "beam":
                found = beam_search(
                    model, encoded, beam=BEAM, max_lengths=limits, length_penalty=1.0
                )
            else:
                found = greedy_search(
                    model, encoded, max_lengths=limits, length_penalty=1.0, scored=False
                )
            assert len(found) == len(source) <= BATCH
            assert all(len(best[0].ids) == PIECES + 1 for best in found)

    answer(search)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
