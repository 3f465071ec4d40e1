"""The bundled models with a learner's own functions as their parts: `regard learn build`.

`parts` lists the parts, `program` is the NumPy program that runs in the grader's sandbox, `building` runs it.
"""
