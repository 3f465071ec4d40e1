"""Interview questions: the bank and the review schedule."""
