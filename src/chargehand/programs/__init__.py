"""Programs as workers: a program and a task -> its output and its changes, in its own folder, within limits.

carry_out.py             one run, from its folder to its result
work_folders.py          the folders that programs of a run work in, and what is left of earlier sessions
checkout.py              a git checkout that shares nothing but objects with its repository, and its changes as a patch
program_environment.py   the variables and the part of the machine a program sees
presets.py               coding agents without a screen: their arguments; their streams -> text, usage, progress
"""
