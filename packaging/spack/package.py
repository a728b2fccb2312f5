# SPDX-License-Identifier: Apache-2.0
"""Spack recipe of kiln. Not tested: Spack is not available where kiln is developed.

It builds a local tree: spack repo create kiln-repo && copy this file to kiln-repo/packages/kiln/package.py,
then spack dev-build kiln@main.
"""

from spack.package import *


class Kiln(CMakePackage):
    """Removes the first-call wait from GPU code that is compiled at run time."""

    license("Apache-2.0")

    version("main")

    variant("python", default=False, description="Build the Python package")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("openssl@3: ~shared")
    depends_on("libsodium libs=static")
    depends_on("zstd libs=static")
    depends_on("hiredis")
    depends_on("xxhash")
    depends_on("curl")
    depends_on("nlohmann-json")
    depends_on("tomlplusplus")
    depends_on("cli11")
    depends_on("opencl-c-headers")
    depends_on("python@3.10:", when="+python", type=("build", "run"))
    depends_on("py-nanobind@2.4:", when="+python", type="build")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("KILN_BUILD_TESTS", False),
            self.define("KILN_BUILD_BENCH", False),
            self.define("KILN_BUILD_EXAMPLES", False),
            self.define_from_variant("KILN_BUILD_PYTHON", "python"),
        ]
