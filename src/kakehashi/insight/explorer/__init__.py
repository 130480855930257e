"""The explorer: every attention weight of some sentences, in one page that needs no network."""
