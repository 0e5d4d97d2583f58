"""States, as the client knows them."""

# Keep in sync with comments/states.js
STATES = (
    "open",
    "closed",
    "void",
)
