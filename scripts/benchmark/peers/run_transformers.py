"""Hugging Face transformers: MarianMT and ``generate``."""

import sys

import torch
from measuring import BEAM, PIECES, SIZES, VOCABULARY, answer, sources
from transformers import MarianConfig, MarianMTModel

PAD, EOS = 0, 3


def main(size: str, threads: int) -> None:
    """Answer to stdin."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    layers, width, feedforward, heads = SIZES[size]
    model = MarianMTModel(
        MarianConfig(
            vocab_size=VOCABULARY,
            d_model=width,
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_ffn_dim=feedforward,
            decoder_ffn_dim=feedforward,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            max_position_embeddings=64,
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=PAD,
            eos_token_id=EOS,
            bos_token_id=2,
            decoder_start_token_id=PAD,
            forced_eos_token_id=EOS,
        )
    ).eval()
    batches = sources(EOS)

    @torch.inference_mode()
    def search(kind: str) -> None:
        for source in batches:
            found = model.generate(
                input_ids=source,
                attention_mask=torch.ones_like(source),
                num_beams=BEAM if kind == "beam" else 1,
                do_sample=False,
                min_new_tokens=PIECES + 1,
                max_new_tokens=PIECES + 1,
                length_penalty=1.0,
            )
            assert found.shape == (len(source), PIECES + 2)

    answer(search)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
