// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {

/// A compiler that is a short shell script, to test commands that fail, hang or inspect their environment. Its
/// arguments are $1 the source, $2 the output, $3 the dependency file, followed by the include options.
class ScriptCompiler {
 public:
  explicit ScriptCompiler(const std::string& lines) : path_(directory_.path("compiler")) {
    write_text(path_, "#!/bin/sh\n" + lines + "\n");
    chmod(path_.c_str(), 0700);
  }
  const std::string& path() const { return path_; }
  /// Returns the path of a file of this name that the script can write.
  std::string file(const std::string& name) const { return directory_.path(name); }
  std::vector<std::string> command() const { return {path_, "{source}", "{output}", "{depfile}", "{includes}"}; }

  /// Returns script lines that write PTX with one kernel, `one`.
  static std::string writes_ptx() { return "printf '.version 8.0\\n.target sm_80\\n.entry one(' > $2\n"; }

 private:
  TemporaryDirectory directory_;
  std::string path_;
};

}  // namespace kiln::test
