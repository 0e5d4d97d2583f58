"""Runs on Temporal: the workflow that orders steps, the activity that carries one out, workers, clients, the record."""
