// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <string>

#include <kiln/unit.hpp>

#include "base/hash.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {

/// A compiler that is a short shell script and takes milliseconds. Its result is the source, so a test can compute the
/// expected bytes of a unit regardless of which process compiled it.
struct CopyingCompiler {
  std::string program;
  std::string headers;  ///< a directory

  /// Reports that it read the header that the first line of the source names.
  static constexpr const char* kScript = R"(#!/bin/sh
read -r word header < "$1"
for last; do :; done
header=${header#<}
echo "out: $1 ${last#-I}/${header%>}" > "$3"
cat "$1" > "$2"
)";
  static Target target() { return {"sm_80", Form::Ptx}; }

  /// Writes the script and the eight headers that sources can name.
  bool install() const {
    if (mkdir(headers.c_str(), 0700) != 0) return false;
    for (int i = 0; i < 8; ++i) {
      write_text(headers + "/common_" + std::to_string(i) + ".h", "// " + std::to_string(i) + "\n");
    }
    write_text(program, kScript);
    return chmod(program.c_str(), 0700) == 0;
  }

  /// Returns a unit with a source of about this size, whose lines depend on its name.
  Unit unit(const std::string& name, std::size_t size) const {
    std::string text =
        "#include <common_" + std::to_string(size % 8) + ".h>\n.version 8.0\n.target sm_80\n.entry one(\n";
    for (unsigned i = 0; text.size() < size; ++i) text += "// " + sha256(name + std::to_string(i)).hex() + "\n";
    return Unit::command(name, text, {program, "{source}", "{output}", "{depfile}", "{includes}"})
        .with_include_root(headers)
        .with_entry("one");
  }
};

}  // namespace kiln::test
