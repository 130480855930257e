"""README.md of an exported folder: how to use it, what was proven, and the model's own card."""

import re

FRONT = re.compile(r"\A---\n.*?\n---\n+", re.DOTALL)
USE = re.compile(r"^## How to use it\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)

CTRANSLATE2 = """\
```python
import sys

import ctranslate2
import sentencepiece

folder = "."  # the folder that this file stands in
pieces = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/tokenizer.model")
translator = ctranslate2.Translator(folder)

for line in sys.stdin:  # a sentence in each
    source = pieces.encode(line.strip(), out_type=str) + ["</s>"]
    found = translator.translate_batch(
        [source],
        beam_size=BEAM,
        patience=PATIENCE,
        length_penalty=PENALTY,
        max_input_length=0,
        max_decoding_length=int(RATIO * len(source)) + EXTRA,
        min_decoding_length=0,SILENCE
    )
    print(pieces.decode(found[0].hypotheses[0]))
```

`max_input_length=0` keeps CTranslate2 from cutting long lines. The model has positions for
POSITIONS pieces. Or with Kakehashi, which sees to all that:

```
kakehashi translate FOLDER --engine ctranslate2 < lines.txt
```
"""

SILENCE = """
        suppress_sequences=[["<pad>"], ["<s>"]],
        disable_unk=True,"""
"""Of a model that might say reserved pieces."""

HUGGINGFACE = """\
```python
import sys

from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = "."  # the folder that this file stands in
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)

lines = [line.rstrip("\\n") for line in sys.stdin]  # a sentence in each
batch = tokenizer(lines, return_tensors="pt", padding=True)
found = model.generate(**batch)
print(tokenizer.batch_decode(found, skip_special_tokens=True))
```

It needs `transformers`, `torch` and `sentencepiece`. The tokenizer, MarianTokenizer, suggests
installing sacremoses; nothing of it is used here. It takes `>>x<<` at the start of a line for a
language code, and U+2581 for a space; all other text becomes the pieces of the original.
The model has positions for POSITIONS pieces. Beam search and length penalty are as with the
original (`generation_config.json`), at a patience of 1.
"""


def readme(card: str, library: str, use: str, proven: str) -> str:
    """The card in a new frame.

    Args:
        card: README.md of the model folder.
        library: ctranslate2 or transformers.
        use: one of the texts above, filled in.
        proven: the report of the proof, lines of plain text.
    """
    front = FRONT.match(card)
    head = front[0].rstrip("\n") + "\n\n" if front else ""
    head = head.replace("library_name: kakehashi", f"library_name: {library}")
    body = USE.sub("", FRONT.sub("", card)).strip("\n")
    names = {"ctranslate2": "CTranslate2", "transformers": "Hugging Face transformers"}
    return (
        f"{head}# A Kakehashi model for {names[library]}\n\n## How to use it\n\n{use}\n"
        f"## What was checked\n\n```\n{proven}\n```\n\n"
        f"What follows is the card of the model that this is an export of.\n\n{body}\n"
    )
