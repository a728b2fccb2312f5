# SPDX-License-Identifier: Apache-2.0
"""Conan 2 recipe of kiln: `conan create packaging/conan`. tests/packages/conan_test.sh creates and uses it without a network.

kiln links its dependencies statically and hides them, so the package requires no other Conan package: a build uses the development
packages of the system (`tools/setup.sh --minimal` installs them).
"""

import glob
import os
import re
import shutil

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt


class Kiln(ConanFile):
    name = "kiln"
    license = "Apache-2.0"
    description = "Removes the first-call wait from GPU code that is compiled at run time"
    topics = ("cuda", "opencl", "jit", "cache")
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    @property
    def _tree(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._tree, "CMakeLists.txt"))
        self.version = re.search(r"project\(kiln VERSION ([0-9.]+)", text)[1]

    def export_sources(self):
        for folder in ("analysis", "apps", "bindings", "cmake", "docs", "include", "runtime", "src", "tools"):
            shutil.copytree(os.path.join(self._tree, folder), os.path.join(self.export_sources_folder, folder))
        for name in ("CMakeLists.txt", "CHANGELOG.md", "LICENSE"):
            shutil.copy(os.path.join(self._tree, name), self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("kiln supports Linux only")

    def system_requirements(self):
        Apt(self).check(
            ["libssl-dev", "libsodium-dev", "libzstd-dev", "libxxhash-dev", "libhiredis-dev", "libcurl4-openssl-dev",
             "nlohmann-json3-dev", "libtomlplusplus-dev", "libcli11-dev", "opencl-headers"])  # fmt: skip

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        for part in ("TESTS", "BENCH", "EXAMPLES", "PYTHON"):
            toolchain.cache_variables[f"KILN_BUILD_{part}"] = False
        toolchain.generate()

    # KILN_PREBUILT names a build directory whose build is packaged instead of another one, as in CI.
    def build(self):
        if not os.environ.get("KILN_PREBUILT"):
            cmake = CMake(self)
            cmake.configure()
            cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        if prebuilt := os.environ.get("KILN_PREBUILT"):
            self.run(f'cmake --install "{prebuilt}" --prefix "{self.package_folder}"')
        else:
            CMake(self).install()

    def package_info(self):
        # The package has its own files for find_package(kiln), which also define kiln_add_bundle().
        self.cpp_info.set_property("cmake_find_mode", "none")
        found = glob.glob(os.path.join(self.package_folder, "lib", "**", "cmake", "kiln"), recursive=True)
        self.cpp_info.builddirs = [os.path.relpath(path, self.package_folder) for path in found]
        self.cpp_info.libdirs = [os.path.relpath(os.path.dirname(os.path.dirname(path)), self.package_folder) for path in found]
        self.cpp_info.libs = ["kiln"]
