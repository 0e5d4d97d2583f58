"""States, changed on both sides."""

# Keep in sync with comments/states_both.js
STATES = (
    "open",
    "void",
)
