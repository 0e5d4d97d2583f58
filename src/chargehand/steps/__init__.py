"""What happens inside of the steps of a run, where models, tools and texts are: refs -> an outcome, and its head.

`task_steps.py` has one method for each kind of step; the other modules are what they are made of.
"""
