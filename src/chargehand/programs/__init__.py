"""Programs as workers: a program and a task -> what it printed and changed, in a folder of its own, within limits.

carry_out.py      one run, from its folder to its result
work_folders.py   the folders that programs of a run work in, and what is left of earlier sessions
checkout.py       a git checkout that shares nothing but objects with its repository, and its changes as a patch
what_it_sees.py   the environment and the part of the machine a program sees
presets.py        the headless modes of coding agents: their arguments, and their streams -> text, usage, progress
"""
