"""When things happen: deadlines, retries and signals, all on a clock that tests can move."""
