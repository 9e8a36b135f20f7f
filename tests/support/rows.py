"""A ledger as rows: its journal and its packed runs brought into their tables, in a copy."""
import contextlib
import os
import shutil
import sqlite3
import subprocess
import tempfile


@contextlib.contextmanager
def rows_of(path, binary):
    """A connection to a copy of the ledger at `path`; `ledger_rows` lies beside the product's binary. CalledProcessError when the copy is not
    whole, as it may be where the product runs."""
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "ledger.db")
        for suffix in ("", "-wal"):
            if os.path.exists(path + suffix):
                shutil.copyfile(path + suffix, copy + suffix)
        subprocess.run([os.path.join(os.path.dirname(os.path.abspath(binary)), "ledger_rows"), copy], check=True, capture_output=True, timeout=60)
        with contextlib.closing(sqlite3.connect(copy)) as database:
            database.row_factory = sqlite3.Row
            yield database
