// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included only by the sources that use CLI11, because CLI11 takes seconds to compile.
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "apps/kiln/command_line.hpp"

namespace kiln::cli {

/// The tree of all commands and options. Help and completions are generated from it.
class CommandTree {
 public:
  CommandTree();
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  CLI::App& app() { return app_; }
  /// Returns the parsed command line. Its command is null if none was given.
  ParsedCommand& parsed() { return parsed_; }
  bool wants_version() const { return wants_version_; }

 private:
  using Run = int (*)(const Arguments&, Console&);

  CLI::App* add(CLI::App& parent, const char* name, const char* about, Run run);
  void add_unit_options(CLI::App& command);
  void add_source_options(CLI::App& command, const char* about_entry);
  void add_architectures(CLI::App& command);
  void add_compile_and_explain();
  void add_split();
  void add_warm();
  void add_bundle();
  void add_bundle_header(CLI::App& bundle);
  void add_bundle_pull(CLI::App& bundle);
  void add_part_key(CLI::App& command);
  void add_identity_options(CLI::App& command);
  void add_provenance(CLI::App& command);
  void add_cache();
  void add_remote();
  void add_key();
  void add_jit();
  void add_jit_options(CLI::App& command, bool places);
  void add_setup();
  void add_audit();
  void add_others();

  CLI::App app_;
  ParsedCommand parsed_;
  bool wants_version_ = false;
};

/// Adds an option that takes one value per use, so that a file name after the value stays a positional argument.
void add_list(CLI::App& command, const char* name, std::vector<std::string>& values, const char* type,
              const char* about);

/// Returns the values that an option accepts; empty if any value is accepted.
std::vector<std::string> choices_of(const std::string& name);

}  // namespace kiln::cli
