# Kakehashi. `make train` is the whole path: environment, corpus, training, evaluation, a model folder.
#
# Variables you can set on the command line:
#   PYTHON    the interpreter to build .venv with (Python 3.11, 3.12 or 3.13); default python3
#   ARGS      words for `kakehashi train`, for example ARGS="model=rnn seed=2"
#   PIP_ARGS  words for pip, for example PIP_ARGS="--extra-index-url ADDRESS" with the address of an
#             index that has CPU-only wheels of torch (see docs/guide.md, "A smaller torch")
#
# Every path is relative to this folder, so the folder's own name may hold spaces.

ARGS     ?=
PIP_ARGS ?=
# The environment in .venv is the only one meant: a PYTHONPATH set for something else stays out.
unexport PYTHONPATH PYTHONHOME
export PYTHON PIP_ARGS

BIN         := .venv/bin
TRANSFORMER := runs/tatoeba-de-en-transformer/latest
RNN         := runs/tatoeba-de-en-rnn/latest

.DEFAULT_GOAL := help
.PHONY: help train baseline test test-slow lint format wheel setup setup-dev clean
.NOTPARALLEL:

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

train: setup ## train, score and save the default translator, German to English
	@if [ -z '$(if $(ARGS),x)' ] && [ -f $(TRANSFORMER)/model/config.json ]; then \
	    cat $(TRANSFORMER)/summary.txt && \
	    echo >&2 && \
	    echo 'Trained before, nothing done now. To train once more: $(BIN)/kakehashi train' >&2 && \
	    echo 'With other settings: make train ARGS="model=transformer_small seed=2"' >&2; \
	else \
	    $(BIN)/kakehashi train $(ARGS); \
	fi

baseline: setup ## the same with the recurrent model, then both side by side
	@[ -f $(TRANSFORMER)/model/config.json ] || $(BIN)/kakehashi train
	@[ -f $(RNN)/model/config.json ] || $(BIN)/kakehashi train model=rnn
	@$(BIN)/kakehashi compare $(TRANSFORMER) $(RNN)

# Lint, mostly mypy on one core, runs beside the tests; what it says comes after them.
test: setup-dev ## lint, types, import contracts and the tests, with coverage
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
	$(MAKE) lint >"$$said" 2>&1 & lint=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n auto --maxprocesses 8 \
	    --dist worksteal --cov --cov-report=term; tests=$$?; \
	wait $$lint; linted=$$?; cat "$$said"; \
	[ $$tests -eq 0 ] && [ $$linted -eq 0 ]

test-slow: setup-dev ## the slow tests: the wheel in an empty environment, longer runs
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow

lint: setup-dev ## formatting, lint, types and import contracts only
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports

format: setup-dev ## put the code into the house's form and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheel: setup-dev ## build dist/kakehashi-*.whl
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

setup: ## only make the environment in .venv (done by the others when needed)
	@sh scripts/setup.sh run

setup-dev: ## the same with what tests and lint need
	@sh scripts/setup.sh dev

clean: ## remove .venv, caches and build outputs; runs/ and data/ stay
	rm -rf .venv build dist htmlcov .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache \
	    .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
