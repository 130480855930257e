"""An exported folder as transformers runs it: what the proof of an export compares with."""

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.methods import BEAM, Method
from kakehashi.decoding.rules import Rules
from kakehashi.inference.ctranslate2_engine import most_pieces
from kakehashi.inference.engine import Followed, R, Row, T
from kakehashi.inference.packages import transformers
from kakehashi.inference.torch_engine import source_tensors
from kakehashi.symbols import BOS, EOS, PAD

DEAR = -1e6
"""A log probability below that of any translation, and above what ``generate`` bars with."""


class HuggingFaceEngine:
    """``AutoModelForSeq2SeqLM`` of a folder, loaded from the disk like any user would."""

    name = "huggingface"

    def __init__(self, folder: Path) -> None:
        library = transformers()
        library.utils.logging.disable_progress_bar()
        self._model: Any = library.AutoModelForSeq2SeqLM.from_pretrained(
            str(folder), local_files_only=True
        ).eval()
        with warnings.catch_warnings():  # it would like to have a normaliser that it does not use
            warnings.simplefilter("ignore")
            self._tokenizer: Any = library.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True
            )

    def other_pieces(self, lines: Sequence[str], rows: Sequence[Row]) -> list[int]:
        """Places of the lines that the folder's own tokenizer does not take for these pieces."""
        found = self._tokenizer(list(lines))["input_ids"]
        return [i for i, row in enumerate(rows) if found[i] != [*row, EOS]]

    def each(self, work: Callable[[T], R], batches: Sequence[T]) -> Iterator[R]:
        """See ``Engine``: one after the other."""
        return map(work, batches)

    @torch.inference_mode()
    def search(
        self,
        rows: Sequence[Row],
        *,
        config: DecodingConfig,
        method: Method = BEAM,
        n_best: int = 1,
        rules: Sequence[Rules] | None = None,
        allow_unknown: bool = False,
    ) -> list[list[Hypothesis]]:
        """By ``generate``, sentences of the same limit together; beam and greedy search only.

        At the limit ``generate`` ranks hypotheses that have not ended among those that have. So a
        beam is given one step more, in which all end at a price that no translation has; if nothing
        has ended without it, the sentence is searched again without that step.
        """
        assert method == BEAM and rules is None and not allow_unknown and config.patience == 1
        groups: dict[int, list[int]] = defaultdict(list)
        for i, row in enumerate(rows):
            groups[most_pieces(len(row) + 1, config)].append(i)
        found: list[list[Hypothesis]] = [[] for _ in rows]
        for limit, group in groups.items():
            chosen = [rows[i] for i in group]
            results = self._generate(chosen, config, n_best, limit, more=config.beam > 1)
            for i, hypotheses in zip(group, results, strict=True):
                found[i] = [h for h in hypotheses if len(h.ids) + h.finished <= limit]
            again = [i for i in group if not found[i]]
            if again:
                chosen = [rows[i] for i in again]
                results = self._generate(chosen, config, n_best, limit, more=False)
                for i, hypotheses in zip(again, results, strict=True):
                    found[i] = hypotheses
        return found

    def _generate(
        self, rows: Sequence[Row], config: DecodingConfig, n_best: int, limit: int, *, more: bool
    ) -> list[list[Hypothesis]]:
        source, allowed = source_tensors(rows, torch.device("cpu"))

        def end(said: Tensor, scores: Tensor) -> Tensor:
            if said.shape[1] <= limit:
                return scores
            dear = torch.full_like(scores, -torch.inf)
            dear[:, EOS] = DEAR
            return dear

        results = self._model.generate(
            input_ids=source,
            attention_mask=allowed.long(),
            num_beams=config.beam,
            num_return_sequences=n_best,
            length_penalty=config.length_penalty,
            early_stopping=config.beam > 1,
            do_sample=False,
            max_length=None,
            max_new_tokens=limit + more,
            logits_processor=transformers().LogitsProcessorList([end] if more else []),
        )
        found: list[list[Hypothesis]] = [[] for _ in rows]
        for at, ids in enumerate(results[:, 1:].tolist()):
            finished = EOS in ids
            said = ids[: ids.index(EOS)] if finished else ids
            found[at // n_best].append(
                Hypothesis(tuple(said), float("nan"), float("nan"), finished)
            )
        return found

    @torch.inference_mode()
    def follow(
        self, rows: Sequence[Row], targets: Sequence[Row], *, attending: bool = False
    ) -> list[Followed]:
        """Teacher-forced; no attention."""
        assert not attending
        source, allowed = source_tensors(rows, torch.device("cpu"))
        labels, _ = source_tensors(targets, torch.device("cpu"))
        labels = labels.masked_fill(labels == PAD, EOS)
        given = torch.cat([torch.full_like(labels[:, :1], BOS), labels[:, :-1]], dim=1)
        logits: Tensor = self._model(
            input_ids=source, attention_mask=allowed.long(), decoder_input_ids=given
        ).logits
        log_softmax = logits.log_softmax(-1, dtype=torch.float32)
        read = log_softmax.gather(2, labels.unsqueeze(2))[..., 0].tolist()
        return [
            Followed(tuple(read[place][: len(pieces) + 1])) for place, pieces in enumerate(targets)
        ]
