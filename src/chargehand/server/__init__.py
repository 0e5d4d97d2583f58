"""Runs over HTTP: the same functions as the command line, as JSON, as a stream of events and as a page.

    run_server.py     starts and stops the server: token, lock of the home, addresses, signals
    app.py            the ASGI application: checks, endpoints, pages
    endpoints.py      the table of endpoints; `openapi.py` makes the OpenAPI document from it
    access.py         access control by Host, token, cookie and Origin
    client_runs.py    what the client token may do: use its own runs, within the default budget
    shared_state.py   the objects that the endpoints share
    calls.py          a request -> its checked query and body
    offered_names.py  the names of teams and models that callers may give
    refusals.py       an error -> application/problem+json
    read_runs.py      endpoints that read runs; `run_list.py` and `run_states.py` hold what is read often
    begin_runs.py     a checked body and its caller -> a run that is carried out
    change_runs.py    endpoints that start, continue, answer and stop runs
    started_runs.py   the runs that this server carries out; `wanted_runs.py` remembers them across restarts
    event_feed.py     the committed events of runs that are watched; `event_stream.py` sends them
    chat_completions.py   a team as an OpenAI model, below /v1; `model_request.py` reads what clients send
    draft_texts.py    answers that are being written, for the same streams; `frames.py` writes both as text
    mcp_server.py     the same over MCP: `mcp_tools.py` is the table, `mcp_http.py` and `mcp_stdio.py` the transports
    wait_for_run.py   lines about a run while somebody waits for it; `run_summary.py` describes its result
    send_page.py      the list of runs and the page of a run, for browsers
    notify.py         starts a program when a run ends or needs a person
    metrics.py, log_lines.py   counters and log lines about the server itself

Needs the extra `serve` (starlette, uvicorn). Nothing below this folder imports it.
"""
