// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>

#include "backends/command/command_runner.hpp"
#include "base/files/file_digest_cache.hpp"
#include "base/mutex.hpp"
#include "core/recipe.hpp"
#include "core/request_context.hpp"

namespace kiln {

/// Properties of a compiler that is a program: its component files, its header search path and its supported targets.
/// kiln knows these for nvcc. For any other program it knows only the program file.
/// Thread-safe.
class CommandToolchain {
 public:
  CommandToolchain(std::string program, FileDigestCache& digests, CommandRunner& runner);

  /// Returns the identity: the content of the program and, for nvcc, of the programs that it calls. Starts one small
  /// process in the life of this process (gcc reports the path of its compiler in 4 ms), so that a cache hit is cheap.
  Result<CompilerIdentity> identity(const RequestContext& context);

  /// Returns the directories that the program searches after those of the command line. The list includes missing
  /// directories. A directory behind a link is listed under both names. Empty for a program that kiln does not know.
  Result<std::vector<std::string>> include_search_paths();

  /// Returns the supported architectures (`sm_80` and the like); empty for a program that kiln does not know.
  Result<std::vector<std::string>> architectures();

  Result<std::string> path() const;
  bool is_nvcc() const;

  /// Returns the environment of the program, except its temporary directory.
  static std::vector<std::string> environment(const std::vector<std::pair<std::string, std::string>>& inputs);

 private:
  Result<std::vector<std::string>> component_files();
  Result<std::string> host_compiler() const;
  Result<std::string> run_cached(const std::vector<std::string>& arguments);
  std::string version_from_directory(const std::string& program);

  const std::string program_;
  FileDigestCache& digests_;
  CommandRunner& runner_;
  Mutex mutex_;
  // Cached output of programs, by command line and environment.
  struct CachedOutput {
    FileStamp stamp;  // stamp of the program at that time
    std::string text;
  };
  std::map<std::vector<std::string>, CachedOutput> output_cache_ KILN_GUARDED_BY(mutex_);
};

/// Looks up a program on this PATH. A name with a slash is not looked up. Returns an empty string if it is not found.
std::string find_program(const std::string& name, const std::string& path);

/// Returns the directories that `gcc -E -v` prints, in its order, after the missing ones that it ignores.
std::vector<std::string> directories_of_search_list(const std::string& printed);

/// Returns the quoted arguments after INCLUDES and SYSTEM_INCLUDES that `nvcc --dryrun` prints.
std::vector<std::string> includes_of_dryrun(const std::string& printed);

}  // namespace kiln
