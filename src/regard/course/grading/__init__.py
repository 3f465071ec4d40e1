"""From a learner's text to a verdict: read, run apart, compared, diagnosed."""
