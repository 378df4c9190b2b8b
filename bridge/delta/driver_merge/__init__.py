"""What the engine `driver` is made of: it finds rows, decides what changes do to them, and chooses files to rewrite."""
