#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::cli {

/// One node of the command tree, as completions are made from it.
struct CommandNode {
  struct Option {
    std::vector<std::string> names;  ///< with their dashes
    std::string help;
    bool takes_value = false;
    std::vector<std::string> choices;  ///< empty: a file name
  };
  std::string name;
  std::string help;
  std::vector<Option> options;
  std::vector<std::string> choices;  ///< of the positional argument
  bool takes_files = false;
  std::vector<CommandNode> commands;
};

/// What the command line said. Fields that a command does not know have their defaults.
struct Arguments {
  // every command
  std::string command;  ///< `kiln cache verify`, for messages
  bool json = false;
  bool verbose = false;
  bool quiet = false;

  // compile, explain: the unit
  std::vector<std::string> files;
  std::vector<std::string> cccl;  ///< names of founding specs, `founding`, or specs as JSON
  std::string manifest;           ///< a kiln.toml; of warm, too
  std::string backend;            ///< cuda, opencl, or empty: by the file's extension
  std::vector<std::string> architectures;
  std::vector<std::string> entries;
  std::vector<std::string> include_folders;
  std::vector<std::string> seals;  ///< DIR=FILE
  std::vector<std::string> definitions;
  std::vector<std::string> options;
  std::string name;

  // compile
  unsigned jobs = 0;  ///< zero: as many as there are cores
  // compile, cache extract, key generate, key certify, report
  std::string output;
  // explain
  bool check = false;
  // warm
  std::string from;

  // cache
  std::string key;  ///< key show and key certify, too
  bool yes = false;
  std::string max_size;

  // remote; its key, size, namespace, epoch and --yes are those of others
  std::string remote;  ///< instead of the settings'
  bool contents = false;
  bool dry_run = false;

  // bundle; explain: --bundle
  std::vector<std::string> bundles;
  // bundle create, bundle merge, key certify
  std::string signing_key;  ///< the path of a secret key; empty: nobody signs
  std::optional<std::string> name_space;
  std::optional<std::uint64_t> epoch;
  // key certify
  std::uint64_t days = 30;
  // bundle create
  std::string depfile;
  std::vector<std::string> foreign;  ///< names of other systems
  // bundle create: --from; explain: --profile
  std::string profile;
  // bundle verify
  std::string public_key;
  // bundle layout
  std::string reference = "latest";

  // audit; its trace, and those of health and report, are in `files`
  std::string fail_on = "medium";
  // calibrate
  std::string calibration;           ///< the file; empty: where programs look for it
  std::vector<std::string> program;  ///< behind --
  bool quick = false;
  bool show = false;

  // status
  unsigned pid = 0;  ///< zero: every process that says something
  bool watch = false;

  // completions
  std::string shell;
  CommandNode tree;
};

}  // namespace kiln::cli
