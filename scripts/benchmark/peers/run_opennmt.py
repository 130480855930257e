# ruff: noqa: E402  (what it imports without need is kept out first)
"""OpenNMT-py: its ``Translator`` and its Transformer, without files."""

import sys
from argparse import Namespace
from types import ModuleType

# Only its treatment of terms uses these, and importing it imports everything.
sys.modules.update({name: ModuleType(name) for name in ("spacy", "ahocorasick", "fasttext")})

import pyonmttok
import torch
from measuring import BEAM, PIECES, SIZES, VOCABULARY, answer, sources
from onmt.constants import DefaultTokens
from onmt.model_builder import build_base_model
from onmt.opts import model_opts
from onmt.translate.beam_search import GNMTGlobalScorer
from onmt.translate.translator import Translator
from onmt.utils.parse import ArgumentParser

SPECIAL = [DefaultTokens.UNK, DefaultTokens.PAD, DefaultTokens.BOS, DefaultTokens.EOS]


def options(size: str) -> Namespace:
    """What its command line would make of the sizes."""
    layers, width, feedforward, heads = SIZES[size]
    parser = ArgumentParser()
    model_opts(parser)
    found = parser.parse_args(
        [
            *("--encoder_type", "transformer", "--decoder_type", "transformer"),
            *("--layers", str(layers), "--hidden_size", str(width), "--heads", str(heads)),
            *("--word_vec_size", str(width), "--transformer_ff", str(feedforward)),
            *("--position_encoding", "--share_embeddings", "--share_decoder_embeddings"),
        ]
    )
    found.dropout, found.attention_dropout, found.optim, found.update_vocab = (
        [0.0],
        [0.0],
        "",
        False,
    )
    found.share_vocab, found.parallel_mode, found.freeze_encoder = True, "data_parallel", False
    found.freeze_decoder, found.freeze_word_vecs_enc, found.freeze_word_vecs_dec = (
        False,
        False,
        False,
    )
    found.quant_layers, found.quant_type, found.lora_layers, found.use_ckpting = [], "", [], []
    found.world_size, found.lora_embedding, found.gpu_ranks = 1, False, []
    ArgumentParser.update_model_opts(found)
    ArgumentParser.validate_model_opts(found)
    return found


def main(size: str, threads: int) -> None:
    """Answer to stdin."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    words = [f"piece{i}" for i in range(VOCABULARY - len(SPECIAL))]
    vocabulary = pyonmttok.build_vocab_from_tokens(words, special_tokens=SPECIAL)
    vocabulary.default_id = vocabulary[DefaultTokens.UNK]
    vocabularies = {
        "src": vocabulary,
        "tgt": vocabulary,
        "decoder_start_token": DefaultTokens.BOS,
    }
    model = build_base_model(options(size), vocabularies).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.xavier_uniform_(parameter)
    batches = sources(vocabulary.lookup_token(DefaultTokens.EOS))
    translators = {
        kind: Translator(
            model,
            vocabularies,
            min_length=PIECES + 1,
            max_length=PIECES + 1,
            max_length_ratio=0,
            beam_size=beam,
            # its translate.py calls this greedy search: the best of one
            random_sampling_topk=1 if kind == "greedy" else 0,
            global_scorer=GNMTGlobalScorer(1.0, 0.0, "avg", "none"),
            report_score=False,
        )
        for kind, beam in (("beam", BEAM), ("greedy", 1))
    }

    def search(kind: str) -> None:
        for source in batches:
            batch = {
                "src": source.unsqueeze(-1),
                "srclen": torch.full((len(source),), PIECES + 1),
                "ind_in_bucket": list(range(len(source))),
            }
            found = translators[kind].translate_batch(batch, attn_debug=False)
            assert len(found["predictions"]) == len(source)
            assert all(len(best[0]) >= PIECES for best in found["predictions"])

    answer(search)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
