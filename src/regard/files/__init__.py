"""Files: how they are opened for reading, how they are written, and which format they have."""
