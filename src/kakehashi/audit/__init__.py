"""What is wrong with a corpus, before anybody trains on it."""

from kakehashi.audit.findings import Example, Finding, Text
from kakehashi.audit.run import Audit, audit

__all__ = ["Audit", "Example", "Finding", "Text", "audit"]
