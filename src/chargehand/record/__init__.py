"""What is kept on disk: one journal per run, the home that holds the journals, a cache, and the trusted folders."""
