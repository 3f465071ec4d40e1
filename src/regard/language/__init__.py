"""Models that read text, and the object that runs them.

Now: `handmade`, one attention layer whose weights nobody trained.
"""
