"""Sockets: where a service listens, and who can reach it there."""

import re

import pytest

from kakehashi.errors import ConfigError
from kakehashi.serving.server import address, bind, is_loopback


@pytest.mark.parametrize(
    ("host", "loopback", "shown"),
    [
        ("127.0.0.1", True, r"http://127\.0\.0\.1:\d+/"),
        ("localhost", True, r"http://(127\.0\.0\.1|\[::1\]):\d+/"),
        ("0.0.0.0", False, r"http://0\.0\.0\.0:\d+/"),
    ],
)
def test_where_it_listens(host: str, loopback: bool, shown: str) -> None:
    with bind(host, 0) as listening:
        assert is_loopback(listening) is loopback
        assert re.fullmatch(shown, address(listening))


def test_an_address_of_another_machine() -> None:
    with pytest.raises(ConfigError, match=r"cannot listen at 192\.0\.2\.1, port 0") as said:
        bind("192.0.2.1", 0)
    assert "--host takes an address of this machine" in str(said.value)
    assert "--port" not in str(said.value)
