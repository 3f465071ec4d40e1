"""Safe reading and atomic writing of files, and recognition of file formats."""
