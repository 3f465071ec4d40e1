"""Interview questions: the bank, and when each is asked again."""
