"""What a cold `kakehashi translate` imports before it has a model: seconds hang on it."""

import json
import subprocess
import sys

IMPORTS = """
import json, sys
import kakehashi.commands.main
import kakehashi.commands.parallel, kakehashi.commands.progress, kakehashi.commands.requests
import kakehashi.commands.streams, kakehashi.inference.translator
print(json.dumps(sorted(sys.modules)))
"""
HEAVY = {
    *("torch", "datasets", "fastapi", "hydra", "lightning", "matplotlib", "omegaconf", "pandas"),
    *("pyarrow", "sacrebleu", "lxml", "sympy", "tensorboard", "transformers", "unearth"),
}


def test_a_translator_is_imported_without_heavy_libraries() -> None:
    """Torch comes with the torch engine only, sacreBLEU with scores only, training's never."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(json.loads(done.stdout))
