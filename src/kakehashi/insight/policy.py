"""What a page allows itself: its own style and script, by their hashes, and nothing else."""

import base64
import hashlib


def content_policy(style: str, script: str, *others: str) -> str:
    """A Content-Security-Policy that forbids all that is not named.

    Args:
        style: the content of the page's one style element.
        script: of its one script element; empty where it has none.
        others: further directives, such as ``connect-src 'self'``.
    """
    scripts = _hash(script) if script else "'none'"
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {scripts}",
            *others,
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
