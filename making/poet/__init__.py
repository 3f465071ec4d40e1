"""Scripts that build the Tang poet: its training poems, and a 5-gram model as a baseline."""
