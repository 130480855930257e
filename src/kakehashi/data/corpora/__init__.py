"""Where pairs come from: the embedded corpus, a user's files, a hub of data sets."""
