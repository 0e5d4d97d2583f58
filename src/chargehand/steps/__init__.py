"""The work inside the steps of a run, where models, tools and texts are used: refs -> an outcome, and its head.

`run_steps.py` has one method for each kind of step of the run as a whole, `task_steps.py` has one for each kind of step
of a task; these two use the other modules.
"""
