"""What happens inside of the steps of a run, where models, tools and texts are: refs -> an outcome, and its head.

`run_steps.py` has one method for each kind of step of the run as a whole, `task_steps.py` for those of a task; the
other modules are what these two are made of.
"""
