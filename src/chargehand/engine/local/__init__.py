"""Engines: the same supervisor code on different ground."""
