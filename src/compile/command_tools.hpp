#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>

#include "base/file_digests.hpp"
#include "base/mutex.hpp"
#include "compile/command_runner.hpp"
#include "core/recipe.hpp"

namespace kiln {

/// What kiln knows of a compiler that is a program: what it consists of, where it looks for headers, for what it
/// compiles. It knows nvcc well; of any other program it knows the file of the program alone. Any thread.
class CommandTools {
 public:
  CommandTools(std::string program, FileDigests& digests, CommandRunner& runner);

  /// By the content of the program and, for nvcc, of the programs that it calls. Starts one small process in the life
  /// of this one (gcc, to say where its compiler is: 4 ms), so that a hit is cheap.
  Result<CompilerIdentity> identity();

  /// The folders that it searches after those of the command line, with those that are not there and would be, and
  /// under both names those that a link leads to. Empty for a program that kiln does not know.
  Result<std::vector<std::string>> search_folders();

  /// `sm_80` and the like; empty for a program that kiln does not know.
  Result<std::vector<std::string>> architectures();

  Result<std::string> path() const;
  bool is_nvcc() const;

  /// All that the program sees of our environment besides its temporary folder.
  static std::vector<std::string> environment(const std::vector<std::pair<std::string, std::string>>& inputs);

 private:
  Result<std::vector<std::string>> parts();
  Result<std::string> host_compiler() const;
  Result<std::string> ask(const std::vector<std::string>& arguments);
  std::string version_beside(const std::string& program);

  const std::string program_;
  FileDigests& digests_;
  CommandRunner& runner_;
  Mutex mutex_;
  // What programs have said, by their command lines and environments.
  struct Said {
    FileStamp stamp;  // of the program then
    std::string text;
  };
  std::map<std::vector<std::string>, Said> said_ KILN_GUARDED_BY(mutex_);
};

/// Where a program is by this PATH; as it is where it has a slash. Empty where it is nowhere.
std::string find_program(const std::string& name, const std::string& path);

/// The folders in what `gcc -E -v` prints, in its order, those that it passes over for not being there first.
std::vector<std::string> folders_of_search_list(const std::string& printed);

/// The quoted arguments behind INCLUDES and SYSTEM_INCLUDES in what `nvcc --dryrun` prints.
std::vector<std::string> includes_of_dryrun(const std::string& printed);

}  // namespace kiln
