"""Words."""

GREETING = "Welcom to the shop"
FAREWELL = "Come again soon"
