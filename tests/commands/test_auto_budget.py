"""`kakehashi train data.batch_tokens=auto`."""

import json
from typing import Any


def test_a_batch_that_fills_the_memory_is_measured_and_written_down(
    kakehashi: Any, small_corpus: Any, tmp_path: Any
) -> None:
    words = [
        "data=files",
        "data.source_language=de",
        "data.target_language=en",
        "data.valid_size=6",
        "data.test_size=0",
        f"data.root={tmp_path / 'data'}",
        "tokenizer.vocab_size=420",
        "model.d_model=16",
        "model.d_feedforward=24",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "model.n_heads=2",
        "decoding.max_ratio=1.0",
        "decoding.max_extra=1",
        "trainer.accelerator=cpu",
        "debug=one_batch",
        f"data.train.source='{small_corpus.source_path}'",
        f"data.train.target='{small_corpus.target_path}'",
        f"runs={tmp_path / 'runs'}",
    ]
    ended = kakehashi("train", *words, "data.batch_tokens=auto")
    assert ended.status == 0, ended.err
    folder = (tmp_path / "runs").glob("*/latest").__next__()
    found = json.loads((folder / "batch_tokens.json").read_text(encoding="utf-8"))
    # 126 pairs: more would be an epoch of hardly any updates
    assert found["batch_tokens"] == 1024
    assert [tokens for tokens, _ in found["measured"]] == [1024]
    assert "data.batch_tokens=auto: 1,024 tokens a batch" in ended.err
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert "data.batch_tokens=1024" in summary["reproduce"]
    assert "auto" not in summary["reproduce"]
    # two updates teach nothing, and the summary says so
    assert summary["training"]["warnings"][0].startswith("BLEU was 0 in the validation")
    assert b"Warning: BLEU was 0 in the validation" in ended.out
    assert summary["training"]["faults"]["skipped"] == 0
    assert not (folder / "faults.jsonl").exists()
