"""Engines of the estimators that learn without targets: what is in the data, and how many of it."""
