"""Packs files so that the same files give the same bytes: sorted, owned by root, with one time for all."""

import gzip
import io
import tarfile
from pathlib import Path


def packed(folder: Path, below: str, epoch_s: int) -> bytes:
    """A gzipped tar archive of a folder.

    Args:
        folder: Whose files and folders are packed.
        below: The folder's name in the archive.
        epoch_s: The time of each file, in seconds since 1970.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = tarfile.TarInfo(f"{below}/{path.relative_to(folder).as_posix()}")
            data = path.read_bytes()
            entry.size, entry.mtime = len(data), epoch_s
            entry.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(content.getvalue(), mtime=epoch_s)
