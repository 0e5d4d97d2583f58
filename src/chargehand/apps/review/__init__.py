"""Code review: a change becomes a plan of lenses and files, the run's findings become what is worth showing."""
