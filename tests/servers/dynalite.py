"""dynalite: a DynamoDB server that knows neither ReturnValuesOnConditionCheckFailure nor TTL."""

from .base import Server, ServerError, answers, free_ports, npm_package, program


class Dynalite(Server):
    """create_ms: how long a new table stays in CREATING, delete_ms: a deleted one in DELETING. data: a folder that keeps the data; in memory without it."""

    def __init__(self, folder=None, create_ms=0, delete_ms=0, data=None):
        super().__init__(folder)
        self.create_ms, self.delete_ms, self.data = create_ms, delete_ms, data

    def launch(self):
        package = npm_package("dynalite")
        if not package:
            raise ServerError("dynalite is not installed: run tests/setup/install test")
        (port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        argv = [program("node"), package / "cli.js", "--host", "127.0.0.1", "--port", port]
        argv += ["--createTableMs", self.create_ms, "--deleteTableMs", self.delete_ms]
        self.spawn("dynalite", argv + (["--path", self.data] if self.data else []))
        self.wait_until(lambda: answers(self.endpoint), 20)
