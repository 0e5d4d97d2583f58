"""Programs that run inside of the sandbox, on the standard library and the test tools; none of it runs outside.

chargehand itself is not there: this folder is a package of its own inside, so its modules import each other relatively.
"""
