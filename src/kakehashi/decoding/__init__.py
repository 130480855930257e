"""Search for a translation through the decoder contract of ``models.interface`` only."""
