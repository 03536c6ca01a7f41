"""Real servers to test against, one module each. All listen on free ports of 127.0.0.1 and end with their starter.

A server is started either in this process (Rgw().start() … .stop(), or as a context manager) or, to be
shared by several processes, by `python3 -m tests.servers` (see __main__.py).
"""
