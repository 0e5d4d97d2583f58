"""How a run goes from a request, or from its record, to a report.

    supervisor.py           `Supervisor`, the Python interface: starts a run, plans without running
    continue_runs.py        `RunLife`, which `Supervisor` extends: resume, rerun, fork
    recorded_runs.py        `RecordedRuns`, which `RunLife` extends: report, answer, cancel, steer, pause, top up
    check_request.py        whether the team may do what is asked, and what is wrong with a given plan
    shared_models.py        the clients of models that runs under way share
    prepared_team.py        the team, its settings and the home of its runs, loaded once for all of these
    session.py              `Session`: one process's turn at a run, from the job to the report; owns its record
    resumed_job.py          a record and what is added to it -> the job that continues it
    answer_question.py      a person's words -> an answer on the record of a run that waits
    report_from_record.py   a record -> the report so far, and the open questions

A job (`RunJob`) comes from `supervisor.py` for a new run and from `resumed_job.py` for one on record. A session carries
it out on an engine, with `flow.run`. Where runs are kept and how they are read is in record/ (`Home`, `RunSource`).
"""
