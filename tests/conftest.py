"""Hypothesis without a deadline: how long one example takes on a shared machine proves nothing.

The default draws the same examples every time, so that a check that passed for a change passes for everybody;
`HYPOTHESIS_PROFILE=explore` draws new ones, and what it finds becomes an `@example`.
"""

import os

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=200)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
