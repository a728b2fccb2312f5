// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "engine/status_format.hpp"

namespace kiln {

/// Returns the directory of progress files for the setting `status.dir`, or an empty string if there must be none.
std::string status_directory(const std::string& setting);
/// Returns the directories in which processes of this user can write progress files: a process with another environment
/// uses another directory.
std::vector<std::string> status_directories(const std::string& setting);

/// The progress files of live processes in a directory.
struct StatusListing {
  std::vector<ProcessStatus> processes;  ///< in order of process id
  std::vector<std::string> problems;     ///< ignored files and the reasons
};
/// Reads a directory. A missing directory is empty. Returns Code::Denied if other users can write to it. Files must be
/// regular files of this user or root that no other user can write to. Removes the files of dead processes.
Result<StatusListing> read_status_directory(const std::string& directory);

/// Removes the files of dead processes from an open directory. Checks at most a few hundred files.
void remove_stale_status_files(int directory);

}  // namespace kiln
