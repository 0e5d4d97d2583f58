"""Judgement on a real model: plans, routing, answers, summaries and contradictions, ours against one plain prompt."""
