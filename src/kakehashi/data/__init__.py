"""Parallel corpora: reading, checking, splitting, tokenising and cutting them into batches."""
