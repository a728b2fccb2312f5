#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {

/// A compiler that is a few lines of shell: what a command does that fails, hangs or asks about its surroundings is
/// easier to say so than by a real one. Its arguments are $1 the source, $2 the output, $3 the dependency file and the
/// include options behind these.
class ScriptCompiler {
 public:
  explicit ScriptCompiler(const std::string& lines) : path_(folder_.path("compiler")) {
    spit(path_, "#!/bin/sh\n" + lines + "\n");
    chmod(path_.c_str(), 0700);
  }
  const std::string& path() const { return path_; }
  /// A file of this name, for the lines to write to.
  std::string file(const std::string& name) const { return folder_.path(name); }
  std::vector<std::string> command() const { return {path_, "{source}", "{output}", "{depfile}", "{includes}"}; }

  /// Lines that leave PTX with one kernel, `one`.
  static std::string writes_ptx() { return "printf '.version 8.0\\n.target sm_80\\n.entry one(' > $2\n"; }

 private:
  TemporaryDirectory folder_;
  std::string path_;
};

}  // namespace kiln::test
