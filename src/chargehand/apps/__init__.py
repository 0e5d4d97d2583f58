"""Programs made of a team and analyzers: code review and test generation. Nothing below imports them."""
