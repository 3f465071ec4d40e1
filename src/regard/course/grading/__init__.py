"""From a learner's source to a verdict: read it, run it in a sandbox, compare the results, diagnose mistakes."""
