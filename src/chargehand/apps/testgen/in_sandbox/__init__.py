"""Programs that run inside of the sandbox, on the standard library and the test tools; none of it runs outside."""
