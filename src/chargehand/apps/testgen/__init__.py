"""A Python project becomes tests for what has none: found without running it, tried in a sandbox, run three times."""
