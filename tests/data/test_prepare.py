from dataclasses import replace

import pytest

from kakehashi.data import prepare
from kakehashi.data.corpora.base import Corpus, Pairs
from kakehashi.data.prepare import prepare_tokenizer, show_normalisation, show_symbols
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import SamplingConfig, TokenizerConfig
from kakehashi.errors import TokenizerError


@pytest.fixture
def corpus(small_corpus) -> Corpus:
    held_out = Pairs(["Ψ"], ["Ж"])
    return Corpus(
        name="small",
        source_language="de",
        target_language="en",
        train=Pairs(small_corpus.source, small_corpus.target),
        valid=held_out,
        test=held_out,
    )


CONFIG = TokenizerConfig(vocab_size=401, character_coverage=1.0)


def test_trained_on_both_sides_of_train_only(corpus: Corpus, tmp_path) -> None:
    tokenizer = prepare_tokenizer(CONFIG, corpus, tmp_path)
    lines = [*corpus.train.source, *corpus.train.target]
    expected = Tokenizer.train(lines, vocab_size=401, character_coverage=1.0)
    assert tokenizer.fingerprint == expected.fingerprint
    # What only the held-out pairs hold is spelled in bytes.
    assert all(piece.startswith("<0x") for piece in tokenizer.pieces(tokenizer.encode("Ψ"))[1:])


def test_trained_once_and_found_again(corpus: Corpus, tmp_path, monkeypatch) -> None:
    first = prepare_tokenizer(CONFIG, corpus, tmp_path)
    monkeypatch.setattr(Tokenizer, "train", None)  # a second training would fail
    assert prepare_tokenizer(CONFIG, corpus, tmp_path).fingerprint == first.fingerprint


def test_other_settings_or_text_train_another(corpus: Corpus, tmp_path) -> None:
    for config in (CONFIG, replace(CONFIG, kind="bpe"), replace(CONFIG, vocab_size=389)):
        prepare_tokenizer(config, corpus, tmp_path)
    prepare_tokenizer(CONFIG, replace(corpus, train=corpus.train.swapped()), tmp_path)
    assert len(list((tmp_path / "cache").iterdir())) == 4


def test_sampling_uses_the_same_tokenizer_and_symbols_another(corpus: Corpus, tmp_path) -> None:
    plain = prepare_tokenizer(CONFIG, corpus, tmp_path)
    sampling = replace(CONFIG, sampling=SamplingConfig(alpha=0.1))
    assert prepare_tokenizer(sampling, corpus, tmp_path).fingerprint == plain.fingerprint
    symbols = prepare_tokenizer(replace(CONFIG, symbols=["{name}", "%s"]), corpus, tmp_path)
    assert symbols.settings.symbols == ("{name}", "%s")
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_what_nfkc_changes_is_told(corpus: Corpus, tmp_path, capsys) -> None:
    train = Pairs(["１２ Äpfel", *corpus.train.source], ["ﬁne", *corpus.train.target])
    folded = replace(corpus, train=train)
    tokenizer = prepare_tokenizer(replace(CONFIG, normalization="nfkc"), folded, tmp_path)
    capsys.readouterr()
    effect = show_normalisation(tokenizer, folded)
    told = capsys.readouterr().err
    assert effect.sentences == 2 * len(train)
    assert f"normalisation: nfkc (changes {effect.changed} of {2 * len(train)} training" in told
    assert '"１２ Äpfel"' in told
    assert "U+FB01 LATIN SMALL LIGATURE FI -> 'fi'" in told
    assert show_normalisation(prepare_tokenizer(CONFIG, corpus, tmp_path), corpus).changed == 0
    assert "normalisation" not in capsys.readouterr().err


def test_symbols_that_no_pair_has_on_both_sides_are_told(corpus: Corpus, tmp_path, capsys) -> None:
    config = replace(CONFIG, symbols=["{name}", "%s", "<b>"])
    train = Pairs(
        ["Hallo {name} <b>", "%s", *corpus.train.source], ["Hi {name}", "<b>", *corpus.train.target]
    )
    marked = replace(corpus, train=train)
    show_symbols(prepare_tokenizer(config, marked, tmp_path), marked)
    told = capsys.readouterr().err
    assert "no training pair has %s on both sides" in told
    assert "no training pair has <b> on both sides" in told
    assert "{name}" not in told


def test_nothing_is_written_when_training_fails(corpus: Corpus, tmp_path) -> None:
    with pytest.raises(TokenizerError, match="largest that works"):
        prepare_tokenizer(TokenizerConfig(vocab_size=90_000), corpus, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_model_is_refused_by_name(corpus: Corpus, tmp_path) -> None:
    prepare_tokenizer(CONFIG, corpus, tmp_path)
    (path,) = (tmp_path / "cache").iterdir()
    path.write_bytes(path.read_bytes()[:999])
    with pytest.raises(TokenizerError, match=path.name):
        prepare_tokenizer(CONFIG, corpus, tmp_path)


def test_a_large_corpus_is_sampled_evenly(monkeypatch) -> None:
    monkeypatch.setattr(prepare, "MAX_TRAINING_LINES", 5)
    assert list(prepare._sample([str(i) for i in range(13)])) == ["0", "2", "5", "7", "10"]
