"""The Tang poet: its poems prepared, and a 5-gram to hold it against."""
