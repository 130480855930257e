import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kakehashi.data.reading import read_bytes
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import TokenizerError
from kakehashi.symbols import BOS, EOS, PAD, UNK

UNDERSCORE = "\u2581"
SYMBOLS = ["{name}", "%s", "%", "<b>", "</b>", ",", '"', "①"]


KINDS = ("unigram", "bpe")


@pytest.fixture(scope="module")
def symbols_tokenizer(small_corpus) -> Tokenizer:
    return Tokenizer.train(small_corpus.source, vocab_size=443, symbols=SYMBOLS)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest, small_corpus) -> Tokenizer:
    lines = [*small_corpus.source, *small_corpus.target, "</s> und <pad> stehen hier"]
    return Tokenizer.train(lines, vocab_size=443, kind=request.param)


@given(st.text())
@example("  zwei  Leerzeichen  ")
@example("</s> <s> <pad> <unk> <0x41>")
@example("\u2581 \u2581\u2581x\u2581")
@example("\ufdd0\u2581\ufdd0s\ufdd0e \ufdd0")
@example("ﬁ … １２ ｶﾅ \xa0 e\u0301 🙂👩‍👩‍👧 \t\r\x00\ufeff\u2028")
def test_every_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert not {PAD, UNK, BOS, EOS} & set(ids)
    assert tokenizer.decode(ids) == text


@given(st.text(st.sampled_from("a ▁\ufdd0sebｱ\u3000")))
def test_escaped_characters_come_back_among_others(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_texts_of_reserved_pieces_in_training_are_ordinary_text(small_corpus, kind: str) -> None:
    odd = ["<s>", "a<s>b", "<0x41>", "x</s>", "<unk><pad>", "▁", "a▁▁b", "\ufdd0"]
    tokenizer = Tokenizer.train([*small_corpus.source, *odd * 50], vocab_size=443, kind=kind)
    for text in odd:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert not {PAD, UNK, BOS, EOS, tokenizer.encode("A")[-1]} & set(ids)


@pytest.mark.parametrize("text", ["🙂", "👩‍👩‍👧", "𠮷野家", "齉", "e\u0301"])
def test_what_training_never_saw_is_spelled_in_bytes(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    spelled = "".join(tokenizer.pieces(ids)).removeprefix(UNDERSCORE)
    in_bytes = "".join(f"<0x{byte:02X}>" for byte in text.encode())
    assert spelled == (in_bytes if text != "e\u0301" else "e<0xCC><0x81>")
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("space", [" ", ""])
def test_long_lines_are_trained_on(small_corpus, kind: str, space: str) -> None:
    text = [*small_corpus.source, *small_corpus.target]
    long = space.join(["überschüssig"] * 6000)
    assert len(long) > 1 << 16
    trained = Tokenizer.train([*text, long], vocab_size=443, kind=kind)
    longest = max(trained.pieces(trained.encode("überschüssig")), key=len)
    assert len(longest) > 6
    # nothing but long lines is some text, too
    alone = Tokenizer.train([" ".join(text)], vocab_size=443, kind=kind)
    assert alone.encode(text[0])


def test_long_lines_are_as_good_as_short_ones(small_corpus) -> None:
    """Cut at the spaces, so that no word is lost and none is made."""
    text = small_corpus.source * 4
    assert len(" ".join(text).encode()) > 4 * 4192
    short, long = (
        Tokenizer.train(lines, vocab_size=443, kind="bpe") for lines in (text, [" ".join(text)])
    )
    assert short.pieces(range(443)) == long.pieces(range(443))


@pytest.fixture(scope="module", params=[(k, n) for k in KINDS for n in ("identity", "nfkc")])
def with_symbols(request: pytest.FixtureRequest, small_corpus) -> Tokenizer:
    kind, normalization = request.param
    lines = [*small_corpus.source, *small_corpus.target, *["Hallo {name}, 5%s <b>gut</b>"] * 30]
    return Tokenizer.train(
        lines, vocab_size=443, kind=kind, normalization=normalization, symbols=SYMBOLS
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hallo {name}!", ["{name}"]),
        ("x{name}y{name}", ["{name}", "{name}"]),
        ("%s%%s %d", ["%s", "%", "%s", "%"]),
        ("<b>der Fluss</b> </ b>", ["<b>", "</b>"]),
        ('{name "①" ', ['"', "①", '"']),
        ("{ name}", []),
        ("{name},<b>", ["{name}", ",", "<b>"]),
    ],
)
def test_symbols_pass_through_whole(
    with_symbols: Tokenizer, text: str, expected: list[str]
) -> None:
    ids = with_symbols.encode(text)
    pieces = with_symbols.pieces(ids)
    assert [piece for piece in pieces if piece in SYMBOLS] == expected
    if with_symbols.settings.normalization == "identity":
        assert with_symbols.decode(ids) == text


def test_symbols_are_parts_of_no_other_piece(with_symbols: Tokenizer) -> None:
    assert with_symbols.settings.symbols == tuple(SYMBOLS)
    assert with_symbols.pieces(with_symbols.symbol_numbers()) == SYMBOLS
    ordinary = with_symbols.pieces(with_symbols.ordinary_pieces())
    assert len(ordinary) == 443 - 4 - 256 - len(SYMBOLS)
    assert not [piece for piece in ordinary for symbol in SYMBOLS if symbol in piece]
    loaded = Tokenizer.from_bytes(with_symbols.to_bytes())
    assert loaded.settings == with_symbols.settings


@given(text=st.lists(st.one_of(st.sampled_from(SYMBOLS), st.text(max_size=5))).map("".join))
def test_every_text_with_symbols_comes_back(symbols_tokenizer: Tokenizer, text: str) -> None:
    assert symbols_tokenizer.decode(symbols_tokenizer.encode(text)) == text


@given(st.text(st.sampled_from("a \ud800\udfff"), max_size=7))
def test_lone_surrogates_become_replacement_characters(tokenizer: Tokenizer, text: str) -> None:
    decoded = tokenizer.decode(tokenizer.encode(text))
    assert decoded == text.replace("\ud800", "\ufffd").replace("\udfff", "\ufffd")


def test_batches_equal_single_texts(tokenizer: Tokenizer) -> None:
    texts = ["Der Fluss ist breit.", "", " ", "犬", "The river is wide."]
    ids = tokenizer.encode_batch(texts)
    assert ids == [tokenizer.encode(text) for text in texts]
    assert tokenizer.decode_batch(ids) == texts


def test_pieces_spell_the_text(tokenizer: Tokenizer) -> None:
    text = "Der Fluss ist breit."
    pieces = tokenizer.pieces(tokenizer.encode(text))
    assert "".join(pieces) == UNDERSCORE + text.replace(" ", UNDERSCORE)
    assert tokenizer.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_specials_are_left_out_of_decoded_text(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("Der Hund")
    assert tokenizer.decode([BOS, *ids, EOS, PAD, PAD]) == "Der Hund"
    assert tokenizer.decode([BOS, EOS]) == ""


@pytest.mark.parametrize("ids", [[443], [-1], [5, 10**6]])
def test_numbers_outside_the_vocabulary_are_refused(tokenizer: Tokenizer, ids: list[int]) -> None:
    assert tokenizer.vocab_size == 443
    with pytest.raises(TokenizerError, match="vocabulary of 443"):
        tokenizer.decode(ids)
    with pytest.raises(TokenizerError, match="vocabulary of 443"):
        tokenizer.pieces(ids)


def test_the_same_text_gives_the_same_bytes(small_corpus) -> None:
    first, second = (Tokenizer.train(small_corpus.source, vocab_size=331) for _ in range(2))
    assert first.to_bytes() == second.to_bytes()
    assert first.fingerprint == second.fingerprint
    other = Tokenizer.train(small_corpus.target, vocab_size=331)
    assert other.fingerprint != first.fingerprint


def test_saved_and_loaded(tokenizer: Tokenizer, tmp_path) -> None:
    path = tmp_path / "new folder" / "tokenizer.model"
    tokenizer.save(path)
    loaded = Tokenizer.load(path)
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.encode("Der Hund") == tokenizer.encode("Der Hund")
    assert Tokenizer.from_bytes(read_bytes(path)).vocab_size == 443


def test_nfkc_folds(small_corpus) -> None:
    folding = Tokenizer.train(small_corpus.source, vocab_size=331, normalization="nfkc")
    assert folding.decode(folding.encode("ﬁnden １２")) == "finden 12"
    texts = ["ﬁnden １２", " a  b ", "", "\u2581", "\ufdd0 ▁ｱ", "🙂 齉", "\ud800"]
    assert folding.normalise(texts) == [folding.decode(folding.encode(text)) for text in texts]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_vocabulary_that_cannot_be_names_the_bound_that_works(small_corpus, kind: str) -> None:
    lines = small_corpus.source[:23]
    for wrong, words in ((50_000, "largest that works is "), (101, "smallest that works is ")):
        with pytest.raises(TokenizerError, match=words) as caught:
            Tokenizer.train(lines, vocab_size=wrong, kind=kind)
        bound = int(str(caught.value).split(words)[1].split()[0])
        assert Tokenizer.train(lines, vocab_size=bound, kind=kind).vocab_size == bound


def test_no_text_is_an_error() -> None:
    for lines in ([], ["", ""]):
        with pytest.raises(TokenizerError, match="no training text"):
            Tokenizer.train(lines, vocab_size=300)


def test_what_is_no_model_is_refused(tmp_path) -> None:
    for content in (b"", b"no model"):
        (tmp_path / "bad.model").write_bytes(content)
        with pytest.raises(TokenizerError, match=r"bad\.model"):
            Tokenizer.load(tmp_path / "bad.model")
    with pytest.raises(TokenizerError, match="cannot read the tokenizer"):
        Tokenizer.load(tmp_path / "absent.model")


def test_a_truncated_model_is_refused(tokenizer: Tokenizer) -> None:
    for end in (10, 1000, len(tokenizer.to_bytes()) // 2):
        with pytest.raises(TokenizerError):
            Tokenizer.from_bytes(tokenizer.to_bytes()[:end])


def test_other_reserved_numbers_are_refused(small_corpus) -> None:
    import io

    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(small_corpus.source),
        model_writer=model,
        vocab_size=101,
        minloglevel=2,
    )
    with pytest.raises(TokenizerError, match="numbers pad, unk, bos, eos"):
        Tokenizer.from_bytes(model.getvalue())
