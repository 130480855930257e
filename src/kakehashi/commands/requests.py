"""What is to be translated, as it stands in the input: lines of text, or of JSON."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kakehashi.errors import ConfigError, DataError

if TYPE_CHECKING:
    from kakehashi.data.tokenizer import Tokenizer
    from kakehashi.inference.request import Request

_BREAKS = {ord(c): f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"}
KEYS = ("text", "prefix", "required", "forbidden")


def requests(
    lines: Iterable[str], name: str, everywhere: "Request", tokenizer: "Tokenizer", *, as_json: bool
) -> Iterator["Request"]:
    """A request for each line.

    Args:
        lines: of the input.
        name: of the input, for errors.
        everywhere: rules for every line: its phrases are added to the line's own, its prefix stands
            where the line has none.
        tokenizer: the model's.
        as_json: whether lines are JSON objects, with ``text`` and, as the line needs them,
            ``prefix``, ``required`` and ``forbidden``; else they are text.

    Raises:
        DataError: with the line that is not such an object, or whose phrases contradict each other.
    """
    from kakehashi.inference.request import Request

    ruled = bool(everywhere.prefix or everywhere.required or everywhere.forbidden)
    if ruled:
        everywhere.rules(tokenizer)  # what is wrong with them is no line's fault
    for number, line in enumerate(lines, 1):
        own: dict[str, Any] = parsed(line, f"{name}, line {number}") if as_json else {"text": line}
        request = Request(
            own["text"],
            own.get("prefix", everywhere.prefix),
            (*everywhere.required, *own.get("required", ())),
            (*everywhere.forbidden, *own.get("forbidden", ())),
        )
        if len(own) > 1:
            try:
                request.rules(tokenizer)
            except ConfigError as error:
                raise DataError(f"{name}, line {number}: {error}") from error
        yield request


def parsed(line: str, where: str) -> dict[str, Any]:
    """A request in JSON, checked.

    Raises:
        DataError: for anything else.
    """
    own = json_object(line, where)
    if unknown := sorted(own.keys() - set(KEYS)):
        raise DataError(f"{where} has the key {unknown[0]!r}; a request has {', '.join(KEYS)}")
    if "text" not in own:
        raise DataError(f'{where} lacks "text", what is to be translated')
    checks: dict[str, tuple[Callable[[Any], bool], str]] = {
        "text": (is_text, "a string"),
        "prefix": (is_text, "a string"),
        "required": (is_list_of_texts, "a list of strings"),
        "forbidden": (is_list_of_texts, "a list of strings"),
    }
    for key, value in own.items():
        fits, wanted = checks[key]
        if not fits(value):
            raise DataError(f'{where}: "{key}" is {json.dumps(value)[:40]}; it must be {wanted}')
    return own


def json_object(line: str, where: str) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        DataError: where it is not one, has a key twice, or half of a surrogate pair, which no text
            has; naming ``where``.
    """
    try:
        found = json.loads(line, object_pairs_hook=partial(_without_doubles, where))
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise DataError(
            f"{where} has \\u{half:04x}, half of a character without its other half"
        ) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise DataError(f"{where} is not a JSON object, such as " + '{"text": "Guten Tag!"}')
    return found


def _without_doubles(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise DataError(f"{where} has the key {twice!r} twice")
    return found


def is_text(value: Any) -> bool:
    """Whether it is a string."""
    return isinstance(value, str)


def is_list_of_texts(value: Any) -> bool:
    """Whether it is a list of nothing but strings."""
    return isinstance(value, list) and all(map(is_text, value))


def json_line(record: dict[str, Any]) -> str:
    """A record on one line, in letters as they are written; a line to every reader of lines."""
    return json.dumps(record, ensure_ascii=False).translate(_BREAKS)
