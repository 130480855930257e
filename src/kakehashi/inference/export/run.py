"""From a model folder to one of another format: written, proven, and only then put in place."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

import kakehashi
from kakehashi.data.reading import is_blank
from kakehashi.data.tokenizer import SPACE
from kakehashi.errors import BundleError, ExportError
from kakehashi.inference.bundle import Bundle, load_bundle
from kakehashi.inference.engine import Engine, Row
from kakehashi.inference.export.check_set import CheckSet, drawn_check_set
from kakehashi.inference.export.huggingface_engine import HuggingFaceEngine
from kakehashi.inference.export.proof import (
    LOSS_ROOM,
    SAME,
    Agreement,
    Likeness,
    prove_alike,
    prove_exact,
)
from kakehashi.inference.export.readme import CTRANSLATE2, HUGGINGFACE, SILENCE, readme
from kakehashi.inference.export.to_ctranslate2 import POSITIONS, write_ctranslate2
from kakehashi.inference.export.to_huggingface import POSITIONS as HUGGINGFACE_POSITIONS
from kakehashi.inference.export.to_huggingface import write_huggingface
from kakehashi.inference.exported import MODEL, RECORD, SETTINGS, TOKENIZER, load_exported
from kakehashi.inference.folder import CARD, TRAINING_HASHES, bundle_folder
from kakehashi.inference.packages import ctranslate2, transformers
from kakehashi.inference.settings import dump_settings
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.symbols import BOS, PAD, UNK


def export_model(
    path: str | Path,
    output: str | Path,
    *,
    to: str,
    quantization: str = "float32",
    check: Callable[[], CheckSet | None] = lambda: None,
) -> str:
    """Export, prove, put in place; returns the report.

    Args:
        path: a model folder or a run folder.
        output: the folder to make; nothing may be there.
        to: ctranslate2 or huggingface.
        quantization: float32, or (CTranslate2 only) int8.
        check: the lines to translate with both models, called once the model is known to be
            exportable; None: lines drawn from its vocabulary.

    Raises:
        ExportError: when the exported model does not do what the original does.
        ConfigError: for a model that the format cannot hold, or a library that is missing.
        BundleError: for a model folder that cannot be used, or an output that exists.
    """
    output = Path(output).expanduser()
    if output.exists() and output.samefile(Path.cwd()):
        raise BundleError(
            f"{output} is the folder that you are in, which cannot be replaced; give a new name"
        )
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise BundleError(f"{output} exists already; give another name or move it away")
    bundle = load_bundle(path)
    with _new_folder(output) as folder:
        if to == "ctranslate2":
            record, engine = _to_ctranslate2(folder, bundle, quantization)
        else:
            record, engine = _to_huggingface(folder, bundle)
        lines = check() or drawn_check_set(bundle.tokenizer, bundle.config.max_length)
        report = _prove(record, bundle, engine, lines, quantization)
        _describe(folder, bundle_folder(path), bundle, record, report)
        _write_record(folder, record)
    return f"{output} ({_megabytes(output)}), {quantization}\n{report}"


def _to_ctranslate2(
    folder: Path, bundle: Bundle, quantization: str
) -> tuple[dict[str, Any], Engine]:
    write_ctranslate2(folder, bundle.model, bundle.tokenizer, quantization=quantization)
    (folder / TOKENIZER).write_bytes(bundle.tokenizer.to_bytes())
    (folder / SETTINGS).write_text(dump_settings(bundle.config), encoding="utf-8")
    record = _record(bundle, "ctranslate2", quantization, POSITIONS, ctranslate2())
    names = (MODEL, "config.json", "shared_vocabulary.json", TOKENIZER)
    record["files"] = {name: _sha256(folder / name) for name in names}
    _write_record(folder, record)
    return record, load_exported(folder)[0]


def _to_huggingface(folder: Path, bundle: Bundle) -> tuple[dict[str, Any], Engine]:
    library = transformers()
    write_huggingface(folder, bundle.model, bundle.tokenizer, bundle.config)
    record = _record(bundle, "huggingface", "float32", HUGGINGFACE_POSITIONS, library)
    record["files"] = {"model.safetensors": _sha256(folder / "model.safetensors")}
    return record, HuggingFaceEngine(folder)


def _record(
    bundle: Bundle, to: str, quantization: str, positions: int, library: Any
) -> dict[str, Any]:
    reserved = bundle.model.output.silence[[PAD, UNK, BOS]]
    return {
        "to": to,
        "quantization": quantization,
        "kakehashi_version": kakehashi.__version__,
        "library": f"{library.__name__} {library.__version__}",
        "torch_version": torch.__version__,
        "source": {
            "weights_sha256": bundle.config.weights_sha256,
            "tokenizer_sha256": bundle.config.tokenizer_sha256,
        },
        "positions": positions,
        "silenced": bool((reserved < 0).all()),
    }


def _prove(
    record: dict[str, Any], bundle: Bundle, engine: Engine, check: CheckSet, quantization: str
) -> str:
    """Compare, keep the figures in the record, and say them."""
    visible = [i for i, line in enumerate(check.source) if not is_blank(line)]
    if not visible:
        raise ExportError(f"{check.name}: there is no line to check the export on")
    reference = check.reference
    if reference is not None:
        reference = [reference[i] for i in visible]
    check = CheckSet(check.name, [check.source[i] for i in visible], reference)
    rows = bundle.tokenizer.encode_batch(check.source)
    numbers = [i + 1 for i in visible]
    original, decoding = TorchEngine(bundle.model), bundle.config.decoding
    if isinstance(engine, HuggingFaceEngine):
        decoding = replace(decoding, patience=1.0)  # it has no other
    pieces = _compare_pieces(engine, check.source, rows, numbers)
    proof: Agreement | Likeness
    if quantization == "float32":
        proof = prove_exact(original, engine, rows, decoding, numbers)
        said = _said_of_exact(proof, decoding.beam)
    else:
        target = bundle.config.target_language
        proof = prove_alike(original, engine, rows, decoding, bundle.tokenizer, check, target)
        said = _said_of_alike(proof)
    record["proof"] = {"check_set": check.name, **asdict(proof)}
    return "\n".join([f"checked on {check.name}, against the original:", *pieces, *said])


def _compare_pieces(
    engine: Engine, lines: Sequence[str], rows: Sequence[Row], numbers: Sequence[int]
) -> list[str]:
    """Whether the folder's own tokenizer does what the original's does, where it has one."""
    if not isinstance(engine, HuggingFaceEngine):
        return []
    other = engine.other_pieces(lines, rows)
    for i in other:
        if not lines[i].startswith(">>") and SPACE not in lines[i]:
            raise ExportError(
                f"the exported tokenizer is not the same: it takes line {numbers[i]} of the check "
                "set for other pieces"
            )
    return [f"tokenizer: the same pieces on {len(rows) - len(other):,} of {len(rows):,} lines"]


def _said_of_exact(proof: Agreement, beam: int) -> list[str]:
    greedy = f" ({proof.greedy_ties:,} part at a tie)" if proof.greedy_ties else ""
    said = [
        f"greedy search: the same text on {proof.greedy_identical:,} of {proof.lines:,} lines"
        + greedy,
        f"scores of {'all' if beam == 1 else 'both'} translations: at most "
        f"{proof.score_difference:.1e} apart ({SAME:.0e} is allowed)",
    ]
    if beam > 1:
        ties = f" ({proof.ties:,} have another text of the same score)" if proof.ties else ""
        said.insert(
            1, f"beam {beam}: the same text on {proof.identical:,} of {proof.lines:,} lines{ties}"
        )
    return said


def _said_of_alike(proof: Likeness) -> list[str]:
    said = [
        f"the same text on {proof.identical:,} of {proof.lines:,} lines",
        f"a piece of the original's translations loses {proof.loss:.3f} of log probability in the "
        "mean" + (f" ({LOSS_ROOM:g} is allowed)" if proof.original is None else ""),
    ]
    if proof.original is None:
        return [*said, f"against the original's translations: {proof.bleu}"]
    return [*said, f"exported: {proof.bleu}", f"original: {proof.original}"]


def _describe(
    folder: Path, source: Path, bundle: Bundle, record: dict[str, Any], report: str
) -> None:
    """The card, and which sentences were trained on."""
    card, to = source / CARD, record["to"]
    use = CTRANSLATE2 if to == "ctranslate2" else HUGGINGFACE
    positions = POSITIONS if to == "ctranslate2" else HUGGINGFACE_POSITIONS
    decoding = bundle.config.decoding
    for name, value in {
        "BEAM": str(decoding.beam),
        "PENALTY": f"{decoding.length_penalty:g}",
        "PATIENCE": f"{decoding.patience:g}",
        "RATIO": f"{decoding.max_ratio:g}",
        "EXTRA": str(decoding.max_extra),
        "SILENCE": "" if record["silenced"] else SILENCE,
    }.items():
        use = use.replace(name, value)
    text = readme(
        card.read_text(encoding="utf-8") if card.is_file() else "",
        "ctranslate2" if to == "ctranslate2" else "transformers",
        use.replace("POSITIONS", f"{positions:,}"),
        report,
    )
    (folder / CARD).write_text(text, encoding="utf-8")
    if to == "ctranslate2" and (source / TRAINING_HASHES).is_file():
        shutil.copyfile(source / TRAINING_HASHES, folder / TRAINING_HASHES)


@contextmanager
def _new_folder(output: Path) -> Iterator[Path]:
    """A temporary neighbour that takes the name once the block has ended well."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    except OSError as error:
        raise BundleError(f"cannot write {output}: {error.strerror or error}") from error
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        try:
            temporary.chmod(0o777 & ~mask)
            temporary.replace(output)
        except OSError as error:
            raise BundleError(f"cannot write {output}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _megabytes(folder: Path) -> str:
    return f"{sum(path.stat().st_size for path in folder.iterdir()) / 1e6:.1f} MB"
