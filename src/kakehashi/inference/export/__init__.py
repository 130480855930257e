"""A finished model in the formats of other runtimes, with the proof that it is still the same."""
