"""Answering on the sample handbook: `python -m tests.evals.answering`."""
