"""Hypothesis without a deadline: how long one example takes on a shared machine proves nothing."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
