"""A git repository as a source of facts: the files of its newest commit, and that commit's date."""

import json
import subprocess


class Repository:
    """A clone at a path, bare or with a work tree."""

    def __init__(self, path, name):
        self.path, self.name = path, name
        self.date = self.git("log", "-1", "--format=%cs").strip()

    def git(self, *words):
        return subprocess.run(["git", "-C", self.path, *words], check=True, capture_output=True, text=True).stdout

    def read(self, path):
        return self.git("show", f"HEAD:{path}")

    def json(self, path):
        return json.loads(self.read(path))

    def changed(self, path):
        """The date of the last commit that touched the file."""
        return self.git("log", "-1", "--format=%cs", "--", path).strip()

    def files(self, folder):
        return self.git("ls-tree", "-r", "--name-only", "HEAD", f"{folder}/").splitlines()


def write_table(path, source, others, columns, rows):
    """Tab-separated. Before that are the place that the facts are from, and how many cases {(group, reason): n} are not about
    this program."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(f"# {source}\n")
        for (group, reason), n in sorted(others.items()):
            file.write(f"# not ours\t{group}\t{n}\t{reason}\n")
        for row in [columns, *rows]:
            cells = [str(cell) for cell in row]
            assert not any(c in cell for cell in cells for c in "\t\n\r"), cells
            file.write("\t".join(cells) + "\n")
