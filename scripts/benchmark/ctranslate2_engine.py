"""Translating with the CTranslate2 engine against CTranslate2's own `translate_file`.

    python scripts/benchmark/ctranslate2_engine.py EXPORT LINES [BEAM]

Both translate the file, tokenising and writing included, on one exported model with as many threads
as OMP_NUM_THREADS says, three times in turn; loading is excluded. The engine is timed with a
patience of 1, which is CTranslate2's own, and with 2.
"""

import sys
import tempfile
import time
from pathlib import Path

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.inference.ctranslate2_engine import CTranslate2Engine, cores
from kakehashi.inference.options import Options
from kakehashi.inference.packages import ctranslate2
from kakehashi.inference.translator import Translator


def ours(translator: Translator, path: Path, output: Path, options: Options) -> None:
    """As `kakehashi translate -i PATH -o OUTPUT` does it."""
    with path.open(encoding="utf-8") as lines, output.open("w", encoding="utf-8") as stream:
        results = translator.stream((line.rstrip("\n") for line in lines), options)
        stream.writelines(result.text + "\n" for result in results)


def theirs(folder: Path, threads: int, path: Path, output: Path, beam: int) -> float:
    """CTranslate2's loop over a file, with SentencePiece; seconds without loading."""
    tokenizer = Tokenizer.load(folder / "tokenizer.model")
    runtime = ctranslate2().Translator(str(folder), intra_threads=threads)
    start = time.perf_counter()
    runtime.translate_file(
        str(path),
        str(output),
        beam_size=beam,
        max_batch_size=64,
        max_input_length=0,
        min_decoding_length=0,
        source_tokenize_fn=lambda line: [*tokenizer.pieces(tokenizer.encode(line)), "</s>"],
        target_detokenize_fn=tokenizer._processor.decode,
    )
    return time.perf_counter() - start


def main() -> None:
    """Print sentences a second."""
    folder, path = Path(sys.argv[1]), Path(sys.argv[2])
    beam = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    count = sum(1 for _ in path.open(encoding="utf-8"))
    translator = Translator.load(folder, engine="ctranslate2")
    assert isinstance(translator.engine, CTranslate2Engine)
    threads = cores()
    with tempfile.TemporaryDirectory() as place:
        output = Path(place) / "out"
        for turn in range(3):
            row = [f"{count / theirs(folder, threads, path, output, beam):7.1f} translate_file"]
            for patience in (1.0, 2.0):
                start = time.perf_counter()
                ours(translator, path, output, Options(beam=beam, patience=patience))
                seconds = time.perf_counter() - start
                row.append(f"{count / seconds:7.1f} engine, patience {patience:g}")
            print(f"turn {turn + 1}, beam {beam}, {threads} threads, sentences/s: ", *row)


if __name__ == "__main__":
    main()
