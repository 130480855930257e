"""joeynmt: its RNN with Bahdanau's attention, and its ``search``."""

import sys
from types import SimpleNamespace

import torch
from joeynmt.model import build_model
from joeynmt.search import search as find
from joeynmt.vocabulary import Vocabulary
from measuring import BEAM, PIECES, VOCABULARY, answer, sources

EOS = 3
SPECIAL = {"unk": 0, "pad": 1, "bos": 2, "eos": EOS}


def vocabulary() -> Vocabulary:
    """8,000 made-up pieces, the special ones first."""
    tokens = {f"{name}_token": f"<{name}>" for name in SPECIAL}
    ids = {f"{name}_id": number for name, number in SPECIAL.items()}
    settings = SimpleNamespace(**tokens, **ids, sep_token=None, sep_id=None, lang_tags=[])
    pieces = [f"piece{i}" for i in range(VOCABULARY - len(SPECIAL))]
    made = Vocabulary([], settings)
    made._itos += pieces  # its own add_tokens takes a quarter of a minute
    made._stoi.update({piece: number for number, piece in enumerate(made._itos)})
    return made


def main(size: str, threads: int) -> None:
    """Answer to stdin."""
    assert size == "rnn"
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    words = vocabulary()
    encoder = {"type": "recurrent", "rnn_type": "gru", "hidden_size": 256, "bidirectional": True}
    decoder = {
        "type": "recurrent",
        "rnn_type": "gru",
        "hidden_size": 256,
        "attention": "bahdanau",
        "input_feeding": True,
        "init_hidden": "bridge",
    }
    for side in (encoder, decoder):
        side["embeddings"] = {"embedding_dim": 128}
    model = build_model(
        {"encoder": encoder, "decoder": decoder, "tied_embeddings": True}, words, words
    ).eval()
    batches = sources(EOS)

    def search(kind: str) -> None:
        for source in batches:
            batch = SimpleNamespace(
                src=source,
                src_length=torch.full((len(source),), PIECES + 1),
                src_mask=torch.ones(len(source), 1, PIECES + 1, dtype=torch.bool),
                has_trg=False,
                trg_prompt_mask=None,
            )
            found, _, _ = find(
                model,
                batch,
                max_output_length=PIECES + 1,
                beam_size=BEAM if kind == "beam" else 1,
                beam_alpha=1.0,
                min_output_length=PIECES + 1,
                return_prob="hyp",
            )
            assert found.shape == (len(source), PIECES + 1)

    answer(search)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
