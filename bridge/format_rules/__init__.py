"""Which rows and options a format takes, without Spark: asked when a pipeline file is loaded, and by the formats."""
