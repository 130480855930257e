"""The two models and what the rooms above know of them."""
