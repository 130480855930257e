"""A head is taught to align in rounds: both directions align all text, what they agree on teaches.

python scripts/benchmark/alignment.py lexicon MODEL SOURCE TARGET LINKS
    Writes links of words for each line: those that IBM Model 1's counts of both directions, with a
    factor for how near the relative positions are, both have as the best of their row and column.
python scripts/benchmark/alignment.py teach MODEL SOURCE TARGET LINKS OUTPUT [UPDATES]
    Goes on training nothing but one head of a finished model (the last of the layer that is read,
    shift 1) on the links, and saves it as another model folder, for `kakehashi align`.
python scripts/benchmark/alignment.py join LINKS MORE OUTPUT
    LINKS, and of MORE those between words that have no link yet.

python scripts/benchmark/alignment.py cut TEXT LANGUAGE OUTPUT
    Punctuation and clitics of French or English text become words of their own, as in the set.
python scripts/benchmark/alignment.py score LINKS GOLD
    The error rate of the last lines of LINKS, as many as GOLD has: all, odd and even ones of GOLD.

A round is: `kakehashi align --with-reverse --refine 3`, then teach both. The model of the
last round aligns and no longer translates well; its alignments are what it is for: `kakehashi train
objective.alignments=...` teaches a model that translates.
"""

import re
import sys
from pathlib import Path

import numpy as np
import torch

from kakehashi.commands.taught import given_links
from kakehashi.data.batching import BatchSampler, FlatCorpus
from kakehashi.data.corpora.base import Corpus
from kakehashi.data.pairs import Pairs
from kakehashi.data.reading import read_lines, write_lines
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.evaluation.alignment import alignment_score
from kakehashi.evaluation.links import gold_links, pharaoh_links, write_links
from kakehashi.inference.alignment import word_alignment
from kakehashi.inference.bundle import load_bundle
from kakehashi.inference.line_words import line_words, piece_words
from kakehashi.inference.save import save_bundle
from kakehashi.training import lexicon as counts
from kakehashi.training.alignment_head import AlignmentHead, taught_choice
from kakehashi.training.lexicon import learn_lexicon, tie_weights

SHARPNESS, LEAST = 8.0, 0.01
"""Of the factor for positions, and of a link's weight."""
counts.LONGEST = 200  # the text that is to be aligned has long sentences
PRONOUNS = "je|tu|il|elle|on|nous|vous|ils|elles|le|la|les|moi|toi|lui|leur|ce|y|en"
TOKENS, RATE, WARM_UP, UPDATES = 4096, 1e-3, 20, 250


def flat(tokenizer: Tokenizer, source: list[str], target: list[str]) -> FlatCorpus:
    """All pairs in pieces."""
    sides = []
    for lines in (source, target):
        rows = tokenizer.encode_batch(lines)
        ids = [number for row in rows for number in row]
        sides += [np.array(ids, np.int32), np.cumsum([0, *map(len, rows)])]
    return FlatCorpus(*sides)


def words(tokenizer: Tokenizer, text: str) -> list[tuple[int, ...]]:
    """The words that each piece of a line is in."""
    pieces = tokenizer.pieces(tokenizer.encode(text))
    return piece_words(pieces, tokenizer.encode_spans(text), line_words(text))


def agreed(tie: np.ndarray) -> list[tuple[int, int]]:
    """Places [M, N] that are the largest of their row and of their column."""
    if not tie.size:
        return []
    source, target = tie.argmax(0), tie.argmax(1)
    return [(int(i), j) for j, i in enumerate(source) if target[i] == j and tie[i, j] > LEAST]


def lexicon(model: Path, source: Path, target: Path, output: Path) -> None:
    """Links of what the counts of both directions agree on."""
    tokenizer = load_bundle(model).tokenizer
    lines, translations = list(read_lines(source)), list(read_lines(target))
    corpus = flat(tokenizer, lines, translations)
    size = tokenizer.vocab_size
    counted = learn_lexicon(corpus, size)
    weights = tie_weights(counted, size).numpy()
    keys = counted.source * size + counted.target
    written = []
    for at, (line, translation) in enumerate(zip(lines, translations, strict=True)):
        m = corpus.source_ids[slice(*corpus.source_offsets[at : at + 2])].astype(np.int64)
        n = corpus.target_ids[slice(*corpus.target_offsets[at : at + 2])].astype(np.int64)
        wanted = m[:, None] * size + n[None]
        place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        middles = [(np.arange(len(side)) + 0.5) / max(1, len(side)) for side in (m, n)]
        distance = np.abs(middles[0][:, None] - middles[1][None])
        tie = weights[place] * (keys[place] == wanted) * np.exp(-SHARPNESS * distance)
        pairs = agreed(tie)
        links = word_alignment(pairs, words(tokenizer, line), words(tokenizer, translation))
        written.append(write_links(links))
    write_lines(output, written)


def teach(model: Path, source: Path, target: Path, links: Path, output: Path, updates: int) -> None:
    """One head of a finished model, and what is under it, trained on links alone."""
    bundle = load_bundle(model)
    lines, translations = list(read_lines(source)), list(read_lines(target))
    nothing = Pairs([], [])
    pairs = Pairs(lines, translations, f"{source}, {target}")
    config = bundle.config
    languages = config.source_language, config.target_language
    corpus = Corpus("taught", *languages, pairs, nothing, nothing, read={"train": len(lines)})
    taught = bundle.model.requires_grad_(True).train()
    choice = taught_choice(taught)
    head = AlignmentHead(given_links(links, corpus, bundle.tokenizer), choice, 1.0)
    tokens = flat(bundle.tokenizer, lines, translations)
    sampler = BatchSampler(
        tokens.source_lengths, tokens.target_lengths, batch_tokens=TOKENS, seed=1
    )
    optimizer = torch.optim.AdamW(taught.parameters(), RATE, betas=(0.9, 0.98))
    for update in range(updates):
        epoch, place = divmod(update, len(sampler))
        if place == 0:
            sampler.set_epoch(epoch)
            rows = sampler.batches()
        batch = tokens.batch(rows[place])
        _, cross = taught.attending_features(batch.source, batch.source_allowed, batch.target_input)
        loss = head.loss(cross, batch) / batch.n_target_tokens
        for group in optimizer.param_groups:
            group["lr"] = RATE * min((update + 1) / WARM_UP, 1.0) * max(0.05, 1 - update / updates)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(taught.parameters(), 1.0)
        optimizer.step()
        if update % 50 == 0:
            print(f"{update}/{updates}: {loss.item():.3f} nats a target piece", flush=True)
    taught.alignment = choice
    save_bundle(
        output,
        taught.eval(),
        bundle.tokenizer,
        source_language=languages[0],
        target_language=languages[1],
        max_length=config.max_length,
        decoding=config.decoding,
        card="",
        metadata={},
    )


def join(first: Path, more: Path, output: Path) -> None:
    """Links of one file, and those of another between words that have none."""
    joined = []
    names = (first, more)
    pairs = zip(*(pharaoh_links(read_lines(name), str(name)) for name in names), strict=True)
    for links, others in pairs:
        found = set(links)
        for i, j in sorted(others):
            if i not in {m for m, _ in found} and j not in {n for _, n in found}:
                found.add((i, j))
        joined.append(write_links(found))
    write_lines(output, joined)


def words_of(text: str, language: str) -> str:
    """Text with a space between any two of its words."""
    text = re.sub(r"([^\w\s'’\-])", r" \1 ", text)
    text = re.sub(r"(\d) ([.,:]) (\d)", r"\1\2\3", text)
    text = re.sub(r"\. +\. +\.", "...", text)
    if language == "fr":
        text = re.sub(r"(\w['’])(?=\w)", r"\1 ", text)
        text = re.sub(r"(?i)aujourd(['’]) hui", r"aujourd\1hui", text)
        text = re.sub(rf"-(t-)?({PRONOUNS})\b", r" -\1\2", text)
    else:
        text = re.sub(r"(\w)n(['’])t\b", r"\1n\2t", text)
        text = re.sub(r"(\w)(['’])(s|ll|re|ve|d|m)\b", r"\1 \2\3", text)
    return " ".join(text.split())


def score(path: Path, gold_path: Path) -> None:
    """What people think of the links of the last lines."""
    gold = gold_links(read_lines(gold_path), str(gold_path))
    links = pharaoh_links(read_lines(path), str(path))[-len(gold) :]
    for name, half in (
        ("all", slice(None)),
        ("odd", slice(0, None, 2)),
        ("even", slice(1, None, 2)),
    ):
        print(f"{name:4} lines: {alignment_score(links[half], gold[half])}")


if __name__ == "__main__":
    if sys.argv[1] == "join":
        join(*map(Path, sys.argv[2:5]))
        raise SystemExit
    if sys.argv[1] == "cut":
        lines = [words_of(line, sys.argv[3]) for line in read_lines(Path(sys.argv[2]))]
        write_lines(Path(sys.argv[4]), lines)
        raise SystemExit
    if sys.argv[1] == "score":
        score(*map(Path, sys.argv[2:4]))
        raise SystemExit
    model_path, source_path, target_path, links_path = map(Path, sys.argv[2:6])
    if sys.argv[1] == "lexicon":
        lexicon(model_path, source_path, target_path, links_path)
    else:
        count = int(sys.argv[7]) if len(sys.argv) > 7 else UPDATES
        teach(model_path, source_path, target_path, links_path, Path(sys.argv[6]), count)
