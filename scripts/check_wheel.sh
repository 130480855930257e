#!/bin/sh
# Builds the wheel, installs it with everything it needs into an empty environment, and trains and
# translates with it in a folder far from the repository: scripts/check_wheel.sh [FOLDER]
#
# Environment: PYTHON (default python3), PIP_ARGS as for make. Takes the time of a fresh install.
set -eu
cd -- "$(dirname -- "$0")/.."
repository=$(pwd -P)
work=${1:-$(mktemp -d)}
mkdir -p "$work/some where else"
unset PYTHONPATH PYTHONHOME

make wheel >&2
"${PYTHON:-python3}" -m venv "$work/environment"
bin=$work/environment/bin
"$bin/python" -m pip install --constraint constraints.txt ${PIP_ARGS:-} dist/kakehashi-*.whl >&2

cp tests/corpus/small.de tests/corpus/small.en "$work/some where else/"
cd "$work/some where else"
"$bin/kakehashi" train data=files name=check data.source_language=de data.target_language=en \
    data.train.source=small.de data.train.target=small.en data.valid_size=10 data.test_size=10 \
    tokenizer.vocab_size=400 trainer=updates trainer.max_updates=20
printf 'Guten Morgen!\n\nDer Hund schläft.\n' | "$bin/kakehashi" translate runs/check/latest \
    > translations
lines=$(wc -l < translations)
[ "$lines" -eq 3 ] || { echo "check_wheel: 3 lines went in, $lines came out" >&2; exit 1; }
echo "check_wheel: the wheel from $repository trains and translates in $work"
