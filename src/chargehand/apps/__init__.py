"""Programs made of a team and analyzers: code review, test generation, the demo. Nothing below imports them."""
