"""The values everything is made of: frozen, with one JSON shape each, and methods that concern only the value."""
