"""Text in, value out: JSON repaired and checked, plans read, citations found, secrets removed, front matter read."""
