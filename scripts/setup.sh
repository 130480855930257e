#!/bin/sh
# Makes .venv ready: scripts/setup.sh run|dev
#
# `run` installs what training and translating need, `dev` adds what tests and lint need. Both take
# the exact versions of constraints.txt. Nothing happens when .venv already holds what is asked for;
# pyproject.toml or constraints.txt changed: installed again; an install that was cut short, or a
# folder that was moved: built anew. Environment: PYTHON (interpreter), PIP_ARGS (words for pip).
set -eu

want=$1
cd -- "$(dirname -- "$0")/.."
stamp=.venv/kakehashi-installed     # written last: place, pins, and what was asked for
unfinished=.venv/kakehashi-unfinished
python=.venv/bin/python

# pip must see the user's index settings, and nothing that would send packages elsewhere.
unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX PIP_ROOT
export PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_DISABLE_PIP_VERSION_CHECK=1

fail() {
    printf 'setup: %s\n' "$1" >&2
    exit 1
}

supported() {  # is this interpreter one that the pinned versions are tested with?
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

check_interpreter() {
    found=$("$1" --version 2>&1) || fail "there is no $1. Name a Python 3.11, 3.12 or 3.13: make train PYTHON=python3.12"
    supported "$1" || fail "$1 is $found; Python 3.11, 3.12 or 3.13 is needed. Name one: make train PYTHON=python3.12"
    "$1" -c 'import ensurepip, venv' 2>/dev/null || fail "$1 cannot make virtual environments: its venv and ensurepip modules are missing.
On Debian and Ubuntu: apt install python3-venv (or python3.12-venv, as your version is). Or name another Python: make train PYTHON=python3.12"
}

create() {
    check_interpreter "${PYTHON:-python3}"
    rm -rf .venv
    mkdir .venv
    : > "$unfinished"
    echo "setup: making .venv with $("${PYTHON:-python3}" --version)" >&2
    "${PYTHON:-python3}" -m venv .venv >&2 || fail "the virtual environment could not be made (see above)"
}

usable() {  # an environment that is whole, stands where it was made, and is of the Python asked for
    [ ! -e "$unfinished" ] && supported "$python" && "$python" -m pip --version >/dev/null 2>&1 || return 1
    [ ! -f "$stamp" ] || [ "$(sed -n 1p "$stamp")" = "$place" ] || return 1
    [ -z "${PYTHON:-}" ] || [ "$("$PYTHON" -c "$version" 2>/dev/null)" = "$("$python" -c "$version")" ]
}

install() {
    "$python" -m pip install --no-compile --constraint constraints.txt ${PIP_ARGS:-} "$@" >&2 \
        || fail "the install did not finish (see above). Run the same command again to go on."
}

place=$(pwd -P)
pins=$(cat pyproject.toml constraints.txt | cksum)
version='import sys; print(sys.version_info[:2])'

usable || create
if [ -f "$stamp" ]; then
    has=$(sed -n 3p "$stamp")
    [ "$has" = run ] || want=dev    # what was there stays there
    [ "$has" = "$want" ] && [ "$(sed -n 2p "$stamp")" = "$pins" ] && exit 0
fi
case "$want" in run) extras='[check,serve]' ;; dev) extras='[dev]' ;; *) fail "say run or dev" ;; esac

: > "$unfinished"
rm -f "$stamp"
echo "setup: installing the pinned versions into .venv (some minutes the first time)" >&2
# Build tools first, pinned like the rest, so that nothing is built with whatever is newest today.
install --quiet hatchling setuptools
install --no-build-isolation --editable ".$extras"
# pip compiles one file after another, on one core: a third of the time of an install. Files that do
# not compile are templates and other Pythons' syntax, which nothing imports.
"$python" -m compileall -q -j 0 .venv/lib >/dev/null 2>&1 || true
printf '%s\n%s\n%s\n' "$place" "$pins" "$want" > "$stamp"
rm -f "$unfinished"
