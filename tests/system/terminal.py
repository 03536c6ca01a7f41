"""A terminal for the program under test, and pictures of what it shows."""

import fcntl
import html
import os
import pty
import struct
import subprocess
import termios
import threading

import pyte

ROWS = 24


class Terminal:
    """Runs one command after the other, as a person would see them. What is shown is in `rows`.

    with Terminal(s3once, 80) as terminal:
        running = terminal.start("push", "logs", "s3://bucket")
        running.wait(60)
    """

    def __init__(self, program, columns, **environment):
        self.program, self.columns = program, columns
        self.environment = {**program.environment, "TERM": "xterm", **environment}
        self.screen = pyte.Screen(columns, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = b""

    def __enter__(self):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, self.columns, 0, 0))
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        return self

    def __exit__(self, *_):
        os.close(self.slave)  # the last one: the reader meets the end
        self.reader.join()
        os.close(self.master)

    def _read(self):
        try:
            while piece := os.read(self.master, 65536):
                self.bytes += piece
                self.stream.feed(piece)
        except OSError:
            pass

    def say(self, text):
        """Text as the shell would print it."""
        os.write(self.slave, text.encode())

    def start(self, *args, cwd=None):
        argv = [str(self.program.binary()), *map(str, args)]
        return subprocess.Popen(argv, env=self.environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=self.slave, stderr=self.slave)

    @property
    def rows(self):
        """The lines of the screen without those below the last text."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip().split("\n")


STYLE = """
  rect { fill: #f6f8fa } text { fill: #1f2328; font: 14px ui-monospace, Menlo, Consolas, monospace; white-space: pre }
  @media (prefers-color-scheme: dark) { rect { fill: #161b22 } text { fill: #e6edf3 } }
"""


def picture(rows):
    """The rows as an SVG, in the colours of whoever looks at it."""
    width, height = 16 + 8.45 * max(map(len, rows)), 16 + 20 * len(rows)
    lines = [f'<text x="8" y="{23 + 20 * i}">{html.escape(row)}</text>' for i, row in enumerate(rows) if row]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img">'
    return "\n".join([head, f"<style>{STYLE}</style>", '<rect width="100%" height="100%" rx="6"/>', *lines, "</svg>", ""])
