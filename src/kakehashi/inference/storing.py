"""Changing what a model folder says about its model, and nothing of the model."""

from dataclasses import replace
from pathlib import Path

from kakehashi.data.reading import write_bytes
from kakehashi.inference.folder import CONFIG, bundle_folder, read_config
from kakehashi.inference.settings import AlignmentChoice, dump_settings
from kakehashi.models.config import attentions


def store_alignment(path: str | Path, choice: AlignmentChoice) -> Path:
    """Write into config.json which attention alignments are read off; whole or not at all.

    Args:
        path: a model folder, or a run folder that holds one.
        choice: a layer and a head that the model has.

    Returns:
        The file that was written.

    Raises:
        BundleError: when there is no model folder, or its config.json is damaged.
        ConfigError: for a layer or a head that the model does not have.
        DataError: when it cannot be written; then it is what it was.
    """
    folder = bundle_folder(path)
    config = read_config(folder)
    choice.check(*attentions(config.model))
    text = dump_settings(replace(config, alignment=choice))
    write_bytes(folder / CONFIG, text.encode("utf-8"))
    return folder / CONFIG
