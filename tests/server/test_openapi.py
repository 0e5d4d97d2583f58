"""Requests generated from the OpenAPI document: no 5xx, and every answer is as the document says."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from chargehand.server.endpoints import ENDPOINTS
from chargehand.server.openapi import describe_api
from tests.counts import count
from tests.server.serving import TOKEN, Client, make_supervisor, serving

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# A stream has no end to wait for; tests/server/test_event_stream.py has it.
OPERATIONS = [
    (endpoint.method, f"/api/v1{endpoint.path}") for endpoint in ENDPOINTS if not endpoint.path.endswith("/stream")
]
CASES = max(5, count(2_000) // (2 * len(OPERATIONS)))


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(make_supervisor(tmp_path_factory.mktemp("fuzzed"))) as client:
        run = client.start()
        client.wait(run)
        yield client, run


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("sort", ["valid", "invalid"])
def test_generated_requests_are_answered_as_described(
    started: tuple[Client, str], method: str, path: str, sort: str
) -> None:
    """With values that fit the document and with values that do not, for runs that are there and for others."""
    client, run = started
    schema = schemathesis.openapi.from_dict(describe_api(ENDPOINTS))
    operation = schema[path.replace(":path", "")][method]
    mode = schemathesis.GenerationMode.POSITIVE if sort == "valid" else schemathesis.GenerationMode.NEGATIVE

    @given(case=operation.as_strategy(generation_mode=mode), names_run=st.booleans())
    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any, names_run: bool) -> None:
        if names_run and "run" in case.path_parameters:
            case.path_parameters["run"] = run
        headers = {"Authorization": f"Bearer {TOKEN}"}
        case.call_and_validate(base_url=f"http://127.0.0.1:{client.port}", headers=headers, checks=CHECKS)

    check()


def test_every_endpoint_is_described(client: Client) -> None:
    """The document that is served has a summary, and the problems any endpoint may give."""
    document = client.get("/api/v1/openapi.json").json
    assert document["openapi"] == "3.1.0"
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    assert len(operations) == len(ENDPOINTS)
    assert len({each["operationId"] for each in operations}) == len(ENDPOINTS)
    for each in operations:
        assert each["summary"].endswith(".")
        assert {"401", "421", "422"} <= each["responses"].keys()
