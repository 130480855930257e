"""Looking at how a model attends."""
