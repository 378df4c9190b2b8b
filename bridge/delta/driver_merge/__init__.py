"""What the engine `deletion-vectors` is made of: the log, the vectors and the data files of a table."""
