# SPDX-License-Identifier: Apache-2.0
"""A program that uses the package: the C program of tests/packages/uses_kiln."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class UsesKiln(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self, src_folder="../../../tests/packages/uses_kiln")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # writes nothing into the source tree
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            self.run(os.path.join(self.cpp.build.bindir, "uses_kiln"), env="conanrun")
