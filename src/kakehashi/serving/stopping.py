"""The end of a service: what is not answered then is refused, and counted."""

import asyncio

from kakehashi.serving.refusal import Refusal


class Stopping:
    """Whether a service has given up what is not answered yet."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.dropped = 0
        """Requests that were given up."""

    def refuse(self) -> Refusal:
        """What a request that is given up is answered; it is counted."""
        self.dropped += 1
        return Refusal(
            503,
            "stopping",
            "the service stops: ask again when it is back",
            {"Connection": "close"},
        )
