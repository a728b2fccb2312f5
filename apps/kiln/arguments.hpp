// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::cli {

/// A node of the command tree, from which the manual page and shell completions are generated.
struct CommandNode {
  struct Option {
    std::vector<std::string> names;  ///< with leading dashes
    std::string help;
    bool takes_value = false;
    std::string value;                 ///< name of the value in the help, for example FILE
    std::vector<std::string> choices;  ///< values to offer; empty if there is no list of them

    /// Returns true if the value is the path of a file or directory.
    bool takes_path() const {
      return value == "FILE" || value == "PATH" || value == "DIR" || value == "BUNDLE" || value == "WHERE";
    }
  };
  struct Positional {
    std::string name;
    std::string help;
    bool required = false;
    std::vector<std::string> choices;
  };
  std::string name;
  std::string help;
  std::string footer;  ///< details and examples
  std::vector<Option> options;
  std::vector<Positional> arguments;
  std::vector<CommandNode> commands;

  /// Returns true if an argument is the path of a file or directory.
  bool takes_files() const {
    for (const Positional& each : arguments) {
      if (each.name == "FILE" || each.name == "MANIFEST" || each.name == "BUNDLE" || each.name == "TRACE") return true;
    }
    return false;
  }
  /// Returns true if an argument is the key of an entry.
  bool takes_key() const {
    for (const Positional& each : arguments) {
      if (each.name == "KEY") return true;
    }
    return false;
  }
};

/// The parsed command line. Fields that a command does not use have their default values.
struct Arguments {
  // every command
  std::string command;  ///< `kiln cache verify`, for messages
  bool json = false;
  bool verbose = false;
  bool quiet = false;

  // compile, explain: the unit
  std::vector<std::string> files;
  std::vector<std::string> cccl;  ///< names of predefined specs, `all`, or specs as JSON
  std::string manifest;           ///< path of a kiln.toml; also for warm
  std::string backend;            ///< cuda or opencl; empty means by the file extension
  std::vector<std::string> architectures;
  std::vector<std::string> entries;
  std::vector<std::string> include_directories;
  std::vector<std::string> sentinels;  ///< DIR=FILE
  std::vector<std::string> definitions;
  std::vector<std::string> options;
  std::string name;
  // split; the source is in `files`
  bool force = false;  ///< replace existing files

  // compile
  unsigned jobs = 0;   ///< number of threads; 0 means one per core
  std::string format;  ///< form of the output: cccl or cuda.compute; empty means kiln's own
  // compile, cache extract, key generate, key certify, report
  std::string output;
  // explain
  bool check = false;
  // warm
  std::string from;

  // cache
  std::string key;  ///< also for key show, key certify and trust add
  bool yes = false;
  std::string max_size;

  // remote; key, max_size, name_space, epoch and yes are shared with other commands
  std::string remote;     ///< replaces the configured store
  bool download = false;  ///< remote verify: also fetch and check the content of every entry
  bool dry_run = false;

  // bundle; explain: --bundle
  std::vector<std::string> bundles;
  // bundle create, bundle merge, key certify
  std::string signing_key;  ///< path of a secret key; empty means unsigned
  std::optional<std::string> name_space;
  std::optional<std::uint64_t> epoch;
  // trust add; the namespaces are in name_space, separated by commas
  std::string policy;  ///< path of the policy file; empty means the configured one
  // key certify
  std::uint64_t days = 30;
  // bundle create
  std::string depfile;
  std::vector<std::string> external;  ///< names of external systems
  std::string provenance;             ///< path of a statement, or `ci`
  std::string builder_id;
  std::string source_uri;
  std::string source_commit;
  // bundle create: --from; explain: --profile
  std::string profile;
  // bundle verify
  std::string public_key;
  bool untrusted = false;  ///< also check the contents of a bundle that the policy does not trust
  // bundle oci, bundle pull
  std::string reference = "latest";
  bool by_architecture = false;

  // audit; the traces of audit, device-usage and report are in `files`
  std::string fail_on = "medium";
  std::string source;  ///< directory of sources to search; empty means none
  // calibrate
  std::string calibration;           ///< path of the file; empty means the default path
  std::vector<std::string> program;  ///< arguments after --; also for run
  bool quick = false;
  bool show = false;

  // jit, run; the names of systems are in `external`, the profile in `profile`, the total size in `max_size`
  std::string rules;                   ///< directory of additional rules
  std::vector<std::string> host_code;  ///< systems with host code to use, in addition to jit.host_code
  std::vector<std::string> roots;      ///< SYSTEM=DIR
  std::string max_entry;               ///< size limit of one entry
  std::string max_system;              ///< size limit of one system
  unsigned seconds = 10;               ///< time limit of a fill or a publication
  std::string publish = "exit";        ///< run: exit, never, or a number of seconds

  // status
  unsigned pid = 0;  ///< process id; 0 means every process with a status file
  bool watch = false;

  // completions, man
  std::string shell;
  CommandNode tree;
};

}  // namespace kiln::cli
