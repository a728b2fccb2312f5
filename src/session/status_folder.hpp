#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "session/config.hpp"
#include "session/status_format.hpp"

namespace kiln {

/// Where the processes of this configuration say how far they are; empty where they are not to.
std::string status_folder(const Config& config);
/// Where others of this user may do so: those that have another environment look for another place.
std::vector<std::string> status_folders(const Config& config);

/// What a folder says of the processes that are alive.
struct StatusListing {
  std::vector<ProcessStatus> processes;  ///< by process id
  std::vector<std::string> problems;     ///< files that were not believed, and why
};
/// A folder that is not there has nothing. Code::Refused where others can write to it. Files must be regular ones of
/// this user or root that nobody else can write to; what dead processes left behind is removed on the way.
Result<StatusListing> read_status_folder(const std::string& folder);

/// Removes what dead processes left in an open folder, looking at no more than some hundreds of files.
void sweep_status_folder(int folder);

}  // namespace kiln
