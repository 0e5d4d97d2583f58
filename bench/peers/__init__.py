"""The same fan of calls by other libraries, each in an environment of its own, interleaved with chargehand."""
