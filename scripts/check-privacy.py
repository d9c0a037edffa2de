#!/usr/bin/env python3
"""Searches results for values that must not be in them: `check-privacy.py FOLDER... --values FILE [--dicom SLIDE...]`.

FILE has a value per line, such as names and numbers of patients. Of a DICOM slide the values of its patient, study,
series and specimen attributes are searched, which needs the package pydicom. Files are searched as bytes and names as
text: values in UTF-8, UTF-16 and Latin-1, in any case, as JSON and HTML escape them, also in members of ZIP and gzip
files, and in base64, as OME-Zarr has ICC profiles. Links to files and folders are followed. What is found is told by file and number of the value, never by the value. Status 0: nothing; 1: something; 2: the
search was not possible.
"""

import argparse
import base64
import binascii
import gzip
import html
import itertools
import json
import os
import pathlib
import re
import sys
import zipfile
import zlib

TEXT_VRS = {"AE", "AS", "DA", "DT", "LO", "LT", "PN", "SH", "ST", "TM", "UC", "UT"}
GROUPS = {0x0008, 0x0010, 0x0020, 0x0032, 0x0038, 0x0040}
# What describes the machine, the way of making or the format, and may be in an output.
KEYWORDS_ALLOWED = {"Manufacturer", "ManufacturerModelName", "Modality", "SoftwareVersions", "SpecificCharacterSet",
                    "CodeValue", "CodeMeaning", "CodingSchemeDesignator", "ContainerIdentifier", "OpticalPathDescription"}
FEWEST_CHARACTERS = 4  # shorter values are anywhere by chance
# As a JSON string has it, where a slash may be escaped, and as pages and XML have it.
BASE64 = re.compile(rb"(?:[A-Za-z0-9+_-]|\\?/){16,}={0,2}")


def dicom_values(path):
    try:
        import pydicom
    except ImportError:
        raise SystemExit("check-privacy.py: --dicom needs the package pydicom")
    values = []
    for element in pydicom.dcmread(path, stop_before_pixels=True).iterall():
        if element.tag.is_private or (element.tag.group in GROUPS and element.VR in TEXT_VRS):
            if element.keyword in KEYWORDS_ALLOWED:
                continue
            many = element.value if isinstance(element.value, (list, tuple, pydicom.multival.MultiValue)) else [element.value]
            for value in many:
                text = value.decode("latin-1", "replace") if isinstance(value, bytes) else str(value)
                values += [text, *text.replace("^", " ").split()]
    return values


def forms(value):
    """The value's bytes, in small letters, as files may have them."""
    texts = {value.lower(), json.dumps(value)[1:-1].lower(), html.escape(value).lower()}
    for text in texts:
        yield text.encode("utf-8")
        yield text.encode("utf-16-le")
        yield text.encode("utf-16-be")
        try:
            yield text.encode("latin-1")
        except UnicodeEncodeError:
            pass


def unpacked_base64(content):
    """What is in base64 in a file, as far as it decodes."""
    for match in BASE64.finditer(content):
        text = match.group().replace(b"\\", b"").translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
        try:
            yield base64.b64decode(text[:len(text) - (len(text) % 4 == 1)] + b"=" * (-len(text) % 4 % 3))
        except binascii.Error:
            pass


def members(path, whole):
    """(name, bytes) of a file, and of what is packed in it."""
    yield path.name, whole
    try:
        if whole[:2] == b"\x1f\x8b":
            yield f"{path.name} (unpacked)", gzip.decompress(whole)
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    yield f"{path.name}/{name}", archive.read(name)
    except (EOFError, RuntimeError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile):
        pass  # looks packed and isn't: its bytes were searched


def contents(path):
    """(name, bytes) of a file or folder, of what is packed in it, and of where a link leads."""
    if path.is_symlink():
        yield path.name, os.fsencode(os.readlink(path))
    if not path.is_file():
        yield path.name, b""
        return
    for name, whole in members(path, path.read_bytes()):
        yield name, whole
        decoded = b"\0".join(unpacked_base64(whole))
        if decoded:
            yield f"{name} (base64)", decoded


def paths_in(folder):
    """What lies in a folder and those below, each folder once: links among them could lead around."""
    if not folder.is_dir():
        yield folder
        return
    seen = set()

    def fail(error):
        raise error

    for place, folders, files in os.walk(folder, followlinks=True, onerror=fail):
        status = os.stat(place)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders.sort()
        for name in sorted(folders + files):
            yield pathlib.Path(place) / name


def search(folders, searched):
    """How many files there are, and how often one has a value."""
    found = files = 0
    for path in itertools.chain.from_iterable(map(paths_in, folders)):
        files += path.is_file()
        for name, content in contents(path):
            small = content.lower() + b"\0" + name.lower().encode("utf-8", "surrogateescape")
            for number, bytes_of in searched:
                if any(one in small for one in bytes_of):
                    print(f"{path.parent / name}: has value {number} of {len(searched)}")
                    found += 1
    return files, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path, help="results")
    parser.add_argument("--values", type=pathlib.Path, help="a file with a value per line")
    parser.add_argument("--dicom", type=pathlib.Path, nargs="+", default=[], help="slides whose attributes are searched")
    arguments = parser.parse_args()
    try:
        values = arguments.values.read_text("utf-8").splitlines() if arguments.values else []
        for slide in arguments.dicom:
            values += dicom_values(slide)
    except (OSError, UnicodeDecodeError) as error:
        print(f"check-privacy.py: {error}", file=sys.stderr)
        return 2
    # One character again and again, such as 000000, says nothing of anybody.
    wanted = list(dict.fromkeys(value.strip() for value in values
                                if len(value.strip()) >= FEWEST_CHARACTERS and len(set(value.strip())) > 1))
    if not wanted:
        print(f"check-privacy.py: no value of {FEWEST_CHARACTERS} characters or more to search for", file=sys.stderr)
        return 2
    searched = [(number, set(forms(value))) for number, value in enumerate(wanted, 1)]
    for folder in arguments.folders:
        if not folder.exists():
            print(f"check-privacy.py: {folder} is not there", file=sys.stderr)
            return 2
    try:
        files, found = search(arguments.folders, searched)
    except OSError as error:
        print(f"check-privacy.py: {error}", file=sys.stderr)
        return 2
    print(f"{files} files, {len(searched)} values: {found} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
