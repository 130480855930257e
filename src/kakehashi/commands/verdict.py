"""What `kakehashi evaluate` says: scores and differences for people, for programs, by sentence."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kakehashi.commands.systems import System, TestSet
from kakehashi.commands.tables import columns

if TYPE_CHECKING:
    from kakehashi.evaluation.scores import Evaluation, Score


@dataclass
class Verdict:
    """All that there is to say about one or two systems."""

    systems: list[System]
    evaluation: "Evaluation"
    test: TestSet
    language: str | None
    warnings: list[str]

    def text(self) -> str:
        """For people: the scores, or a table of two systems and their differences."""
        if len(self.systems) == 1:
            return "\n".join(map(str, self.evaluation.scores[0]))
        return "\n".join([*self._table(), "", *self._legend()])

    def _table(self) -> list[str]:
        first, second = (system.name for system in self.systems)
        rows = [["", "A", "B", "A - B", "p"]]
        found = zip(*self.evaluation.scores, self.evaluation.differences, strict=True)
        for a, b, difference in found:
            change = f"{difference.value:+.2f}"
            rows.append([a.name, _cell(a), _cell(b), change, f"{difference.p_value:.4f}"])
        return [f"A  {first}", f"B  {second}", "", *columns(rows)]

    def _legend(self) -> list[str]:
        legend = [
            "In brackets: 95 % interval. p: how probable so large a difference would be if A and B",
            "were equally good (paired bootstrap). BLEU and chrF: more is better; TER: less.",
            "",
        ]
        return legend + [f"{score.name} {score.signature}" for score in self.evaluation.scores[0]]

    def json(self) -> str:
        """For programs: one object."""
        first = self.systems[0].facts | self.test.facts()
        first |= {"target_language": self.language} | self._scores(0)
        if len(self.systems) == 2:
            first["against"] = self.systems[1].facts | self._scores(1)
            pairs = zip(self.evaluation.metrics, self.evaluation.differences, strict=True)
            first["differences"] = {metric.key: asdict(change) for metric, change in pairs}
        return json.dumps(first | {"warnings": self.warnings}, ensure_ascii=False)

    def _scores(self, system: int) -> dict[str, Any]:
        pairs = zip(self.evaluation.metrics, self.evaluation.scores[system], strict=True)
        return {metric.key: asdict(score) for metric, score in pairs}

    def sentences(self) -> Iterator[str]:
        """JSON lines, one a sentence, with its own scores; BLEU of a sentence has ``eff:yes``."""
        sources = self.test.sources
        columns = [self.evaluation.sentence_scores(i) for i in range(len(self.systems))]
        for i, reference in enumerate(self.test.references):
            found = [
                {"hypothesis": system.hypotheses[i]}
                | {key: values[i] for key, values in scores.items()}
                for system, scores in zip(self.systems, columns, strict=True)
            ]
            record: dict[str, Any] = {"line": i + 1}
            record["source"] = None if sources is None else sources[i]
            record |= {"reference": reference} | found[0]
            if len(found) == 2:
                record["against"] = found[1]
            yield json.dumps(record, ensure_ascii=False)


def _cell(score: "Score") -> str:
    return f"{score.value:.2f} ({score.low:.2f} to {score.high:.2f})"
