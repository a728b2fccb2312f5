# SPDX-License-Identifier: Apache-2.0
"""Creates a wheel of a package `heat` that contains a bundle and a library: make_wheel.py DIRECTORY BUNDLE LIBRARY."""
import base64
import hashlib
import pathlib
import sys
import zipfile

folder, bundle, library = (pathlib.Path(argument) for argument in sys.argv[1:])
init = '''"""A package that contains its GPU code twice: as a file, and in a library."""
import ctypes
import importlib.resources

BUNDLE = importlib.resources.files(__name__) / "heat.kiln"


def compiled():
    """Returns the number of units that the library had to compile."""
    return ctypes.CDLL(str(importlib.resources.files(__name__) / "extension.so")).extension_compiled()
'''
files = {
    "heat/__init__.py": init.encode(),
    "heat/heat.kiln": bundle.read_bytes(),
    "heat/extension.so": library.read_bytes(),
    "heat-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: heat\nVersion: 1.0\n",
    "heat-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: kiln's tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
record = ""
for name, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(content)}\n"
files["heat-1.0.dist-info/RECORD"] = (record + "heat-1.0.dist-info/RECORD,,\n").encode()

wheel = folder / "heat-1.0-py3-none-any.whl"
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, content in files.items():
        archive.writestr(name, content)
print(wheel)
