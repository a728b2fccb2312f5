# SPDX-License-Identifier: Apache-2.0
"""Checks that the SBOM lists every static library that the build links, with the version that is really linked.

    sbom_test.py SOURCE_DIR BUILD_DIR KILN
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

source, build, kiln = (pathlib.Path(argument) for argument in sys.argv[1:4])
make_sbom = source / "tools/make_sbom"


def made(folder: pathlib.Path, output: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, make_sbom, folder, "-o", output], capture_output=True, text=True,
                          env=dict(os.environ, SOURCE_DATE_EPOCH="1700000000"), check=False)


with tempfile.TemporaryDirectory() as scratch_name:
    scratch = pathlib.Path(scratch_name)
    ran = made(build, scratch / "kiln.spdx.json")
    assert ran.returncode == 0, ran.stderr
    document = json.loads((scratch / "kiln.spdx.json").read_text())
    packages = {package["name"]: package for package in document["packages"]}

    # Each archive in the build's CMake cache, by file name.
    cache = (build / "CMakeCache.txt").read_text()
    archives = re.findall(r"^KILN_LIB\w+:FILEPATH=(.*\.a)$", cache, re.MULTILINE)
    assert len(archives) >= 3, archives
    listed = {package.get("packageFileName"): package for package in document["packages"]}
    for archive in archives:
        package = listed.get(pathlib.Path(archive).name)
        assert package and package.get("versionInfo"), f"{archive} is linked but not listed with a version"

    # The versions that the program reports.
    printed = subprocess.run([kiln, "version", "--json"], capture_output=True, text=True, check=True).stdout
    libraries = json.loads(printed)["libraries"]
    assert {"libcrypto", "libsodium", "zstd"} <= set(libraries), printed
    for name, version in libraries.items():
        info = packages[name]["versionInfo"]
        assert re.match(rf"(\d+:)?{re.escape(version)}(?![0-9])", info), f"{name}: the program reports {version}, the SBOM {info}"

    # An archive from another location gets the version of the headers, not that of the system's package.
    shutil.copy(next(a for a in archives if "zstd" in a), scratch / "libzstd.a")
    (scratch / "CMakeCache.txt").write_text(
        re.sub(r"^(KILN_LIBZSTD:FILEPATH=).*$", rf"\g<1>{scratch}/libzstd.a", cache, flags=re.MULTILINE))
    ran = made(scratch, scratch / "other.json")
    assert ran.returncode == 0, ran.stderr
    other = {package["name"]: package for package in json.loads((scratch / "other.json").read_text())["packages"]}
    assert other["zstd"]["versionInfo"] == libraries["zstd"], other["zstd"]
    assert "pkg:generic/" in other["zstd"]["externalRefs"][0]["referenceLocator"], other["zstd"]
print("every linked library is listed with its version:", libraries)
