"""What happens inside of the steps of a run, where models, tools and texts are: refs -> an outcome, and its head.

`task_steps.py` has one method for each kind of step, `final_report.py` makes the report from the results of a run; the
other modules are what these two are made of.
"""
