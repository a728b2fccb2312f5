#pragma once

// For the two sources that know CLI11, which takes seconds to compile.
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "apps/kiln/command_line.hpp"

namespace kiln::cli {

/// Every command and option there is, and what each sets: help and completions come from the same tree.
class CommandTree {
 public:
  CommandTree();
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  CLI::App& app() { return app_; }
  /// What the parsed command line said; the command is null where none was given.
  Parsed& parsed() { return parsed_; }
  bool wants_version() const { return wants_version_; }

 private:
  using Run = int (*)(const Arguments&, Console&);

  CLI::App* add(CLI::App& parent, const char* name, const char* about, Run run);
  void add_unit_options(CLI::App& command);
  void add_architectures(CLI::App& command);
  void add_compile_and_explain();
  void add_warm();
  void add_bundle();
  void add_bundle_units(CLI::App& bundle);
  void add_speaker(CLI::App& command);
  void add_cache();
  void add_remote();
  void add_key();
  void add_audit();
  void add_others();

  CLI::App app_;
  Parsed parsed_;
  bool wants_version_ = false;
};

/// The values that an option takes, where there are only so many.
std::vector<std::string> choices_of(const std::string& name);

}  // namespace kiln::cli
