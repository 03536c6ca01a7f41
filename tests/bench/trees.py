"""Files to upload. Their bytes are random, so that nothing on the way can compress or guess them."""

import os
from dataclasses import dataclass

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PER_FOLDER = 100
PIECE = 16 * MIB


@dataclass
class Case:
    name: str
    files: int
    size: int

    def make(self, folder):
        """Makes the tree, unless it is there, and returns its root."""
        root = folder / self.name.replace(" ", "")
        done = folder / f"{root.name}.made"
        if done.exists():
            return root
        for i in range(self.files):
            path = root / f"{i // PER_FOLDER:05d}" / f"{i:08d}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as file:
                for at in range(0, self.size, PIECE):
                    file.write(os.urandom(min(PIECE, self.size - at)))
        done.touch()
        return root


CASES = {
    "small": Case("10,000 x 4 KiB", 10000, 4 * KIB),
    "medium": Case("1,000 x 1 MiB", 1000, MIB),
    "large": Case("1 x 4 GiB", 1, 4 * GIB),
}
