"""What all Python tests share."""

import hypothesis

# A slow or shared machine must not fail a property test, and a failure must be the same for everyone.
hypothesis.settings.register_profile("lowlp", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("lowlp")
