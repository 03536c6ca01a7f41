"""s3rver: a small S3 of npm that verifies nothing, ignores conditions and has neither ListParts nor Abort."""

from .base import Server, ServerError, answers, free_ports, npm_package, program


class S3rver(Server):
    """Its keys are its own and fixed. It does not survive keys of more than some 200 bytes."""

    access_key = "S3RVER"
    secret_key = "S3RVER"

    def launch(self):
        package = npm_package("s3rver")
        if not package:
            raise ServerError("s3rver is not installed: run tests/setup/install test")
        (port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        argv = [program("node"), package / "bin" / "s3rver.js", "--address", "127.0.0.1", "--port", port]
        (self.folder / "data").mkdir(exist_ok=True)
        self.spawn("s3rver", argv + ["--directory", self.folder / "data", "--silent"])
        self.wait_until(lambda: answers(self.endpoint), 20)
