"""dynoxide: a small DynamoDB server that answers ReturnValuesOnConditionCheckFailure (x86_64 only)."""

from .base import Server, ServerError, answers, free_ports, npm_package


class Dynoxide(Server):
    """database: a file that keeps the data over restarts; in memory without it."""

    def __init__(self, folder=None, database=None):
        super().__init__(folder)
        self.database = database

    def launch(self):
        package = npm_package("@dynoxide/linux-x64")
        if not package:
            raise ServerError("dynoxide is not installed here (it exists for x86_64 only)")
        (port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        argv = [package / "dynoxide", "serve", "--host", "127.0.0.1", "--port", port]
        self.spawn("dynoxide", argv + (["--db-path", self.database] if self.database else []))
        self.wait_until(lambda: answers(self.endpoint), 20)
