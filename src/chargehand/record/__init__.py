"""What is kept on disk: one journal per run, the home that holds them, a cache, and the folders that are trusted."""
