"""Labelled cases and candidates -> figures with intervals: routing, plans, workers, synthesis and whole runs.

suite -> items (case x candidate x repeat) -> results, each stored when it arrives -> evaluation -> verdict, page
"""

from __future__ import annotations

from chargehand.evaluation.baseline import BaselineVerdict, Regression, against
from chargehand.evaluation.candidate import Candidate, plain_calls
from chargehand.evaluation.result import Check, Result
from chargehand.evaluation.runner import check_candidates, items, known_results, measure, store_of, suits_plain_call
from chargehand.evaluation.suite import InvalidSuite, Placed, Suite, files_of, read_suite
from chargehand.evaluation.summary import Evaluation, SuiteInfo, summarise

__all__ = [
    "BaselineVerdict",
    "Candidate",
    "Check",
    "Evaluation",
    "InvalidSuite",
    "Placed",
    "Regression",
    "Result",
    "Suite",
    "SuiteInfo",
    "against",
    "check_candidates",
    "files_of",
    "items",
    "known_results",
    "measure",
    "plain_calls",
    "read_suite",
    "store_of",
    "suits_plain_call",
    "summarise",
]
