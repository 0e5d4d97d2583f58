"""`chargehand` and `python -m chargehand` are the command line."""

import signal

# While modules are loaded, Ctrl-C ends the process without a traceback; `main` takes it from there.
# Where it is ignored, as in a job of a script in the background, it stays so.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from chargehand.cli import main

if __name__ == "__main__":
    main()
