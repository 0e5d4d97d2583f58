"""A debugger's own code may speak of breakpoints."""

HELP = """
breakpoint()
    stops here
"""


def breakpoint_at(line: int) -> str:
    # breakpoint() would stop here
    return f"breakpoint() at {line}"
