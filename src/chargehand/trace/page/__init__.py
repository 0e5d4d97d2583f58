"""The run page: static modules, a style sheet and the frame they are put in."""
