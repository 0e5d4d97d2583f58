"""Programs that run only inside the sandbox, with the standard library and the test tools.

chargehand itself is not there: inside, this folder is its own package, so its modules use relative imports.
"""
