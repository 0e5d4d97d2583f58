"""The life of a run: started, driven by a session, resumed, run again, answered, cancelled and looked at."""
