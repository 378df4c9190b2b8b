"""The rows and options that each format accepts, checked without Spark when a pipeline file is loaded."""
