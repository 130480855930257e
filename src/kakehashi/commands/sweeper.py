"""`kakehashi train --multirun hydra/sweeper=optuna`: a search for good settings.

Optuna proposes, by its tree-structured Parzen estimator (Bergstra et al., 2011); a run's validation
BLEU is what it learns from. What was tried is kept in the sweep's folder, so that a sweep that was
interrupted, or is to be longer, goes on where it was.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from kakehashi.commands.search import search_space
from kakehashi.commands.trials import Row, row, write_table
from kakehashi.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.distributions import BaseDistribution

STORAGE = "study.log"
_ROW = "row"
"""What the study keeps of a trial beside Optuna's own."""


class Search(Sweeper):
    """Runs trials until there are ``n_trials`` of them, then shows what each came to."""

    def __init__(self, n_trials: int, at_once: int, seed: int, folder: str) -> None:
        self.n_trials, self.at_once, self.seed = n_trials, at_once, seed
        self.folder = Path(folder)
        self.config: DictConfig | None = None
        self.hydra_context: HydraContext | None = None
        self.launcher: Launcher | None = None

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> list[Row]:
        """All trials, and the table on standard output.

        Raises:
            ConfigError: when there is nothing to search, or the folder holds another sweep.
            TrainingError: at the end, when runs failed.
        """
        assert self.hydra_context is not None
        if self.n_trials < 1 or self.at_once < 1:
            raise ConfigError(
                f"hydra.sweeper.n_trials is {self.n_trials} and hydra.sweeper.at_once "
                f"{self.at_once}: they must be at least 1"
            )
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides: list[Override] = parser.parse_overrides(arguments)
        study = self._study([o.input_line or "" for o in overrides if not o.is_hydra_override()])
        space = search_space(overrides)
        fixed = [o.input_line or "" for o in overrides if not o.is_sweep_override()]
        while (missing := self.n_trials - len(_rows(study))) > 0:
            self._round(study, space, fixed, min(missing, self.at_once))
            write_table(_rows(study), self.folder)
        rows = _rows(study)
        sys.stdout.write(write_table(rows, self.folder))
        if failed := sum(row.error is not None for row in rows):
            raise TrainingError(
                f"{failed} of {len(rows)} trials failed; their errors are in "
                f"{self.folder / 'sweep.json'}"
            )
        return rows

    def _study(self, words: list[str]) -> "Study":
        """The sweep of this folder as far as it has got."""
        try:
            import optuna
            from optuna.storages.journal import JournalFileBackend, JournalStorage
        except ImportError:
            raise ConfigError(
                "hydra/sweeper=optuna needs the library optuna: pip install 'kakehashi[sweep]'"
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.folder.mkdir(parents=True, exist_ok=True)
        storage = JournalStorage(JournalFileBackend(str(self.folder / STORAGE)))
        study = optuna.create_study(
            storage=storage, study_name="sweep", direction="maximize", load_if_exists=True
        )
        before = study.user_attrs.get("words", words)
        if other := sorted(set(before).symmetric_difference(words)):
            raise ConfigError(
                f"{self.folder} holds a sweep with other words (one of the two has not "
                f"{', '.join(other)}): give another hydra.sweeper.folder, or leave it out"
            )
        study.set_user_attr("words", words)
        # another seed for what is to come: the same one would propose the same once more
        study.sampler = optuna.samplers.TPESampler(seed=self.seed + len(study.trials))
        return study

    def _round(
        self, study: "Study", space: "dict[str, BaseDistribution]", fixed: list[str], n: int
    ) -> None:
        """Choose ``n`` trials, run them, and tell the study what they came to."""
        assert self.launcher is not None
        trials = [study.ask(space) for _ in range(n)]
        searched = [{name: _typed(value) for name, value in t.params.items()} for t in trials]
        words = [[*fixed, *(f"{k}={v}" for k, v in settings.items())] for settings in searched]
        self.validate_batch_is_legal(words)
        returned = self.launcher.launch(words, initial_job_idx=trials[0].number)
        for trial, settings, job in zip(trials, searched, returned, strict=True):
            _tell(study, trial, settings, job)


def _tell(study: "Study", trial: "Trial", settings: dict[str, str], job: JobReturn) -> None:
    from optuna.trial import TrialState

    assert job.hydra_cfg is not None
    folder = Path(job.hydra_cfg.hydra.runtime.output_dir)
    if job.status is JobStatus.COMPLETED:
        done = row(trial.number, settings, _short(folder), float(job.return_value))
        trial.set_user_attr(_ROW, vars(done))
        study.tell(trial, done.validation_bleu)
        return
    error = str(job._return_value)
    left = _short(folder) if folder.exists() else ""
    lost = Row(trial.number, settings, None, None, None, left, "", error)
    trial.set_user_attr(_ROW, vars(lost))
    study.tell(trial, state=TrialState.FAIL)


def _rows(study: "Study") -> list[Row]:
    """The trials that came to an end; one that was interrupted is none of them."""
    ended = (trial.user_attrs.get(_ROW) for trial in study.get_trials(deepcopy=False))
    return [Row(**values) for values in ended if values is not None]


def _short(folder: Path) -> str:
    """From the working directory where possible."""
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)


def _typed(value: Any) -> str:
    """A value as Hydra reads it back exactly; categories are words already."""
    return value if isinstance(value, str) else repr(value)
