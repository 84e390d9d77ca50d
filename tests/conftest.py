"""What all tests share."""

from hypothesis import settings

# No deadline, because torch's first call is slow; the same examples in every run.
settings.register_profile("wordward", deadline=None, derandomize=True)
settings.load_profile("wordward")
