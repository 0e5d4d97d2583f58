"""A run on many machines: its record as objects in a store, and the order of its steps as a workflow of Temporal."""
