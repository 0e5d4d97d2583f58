"""Request -> plan: drafted by a model, routed, added to, extended, split, previewed, approved."""
