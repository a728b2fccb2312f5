#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// Where the files lie in which the kernel tells about a machine. Tests have their own; everyone else the default.
struct MachineFiles {
  std::string root;  ///< before `/proc/…` and `/sys/…`
};

/// How many processors this process may keep busy, by its affinity and by its control group's share of time; at least
/// one. Quick enough for any caller: the share is looked up at most once a second.
unsigned usable_cores();
/// The share of time that the control group of this process and those above it leave, in processors, rounded up.
/// Nothing where there is no bound. Reads files.
std::optional<unsigned> cores_of_group(const MachineFiles& files = {});

/// How many bytes of memory can be had without swapping, as far as the machine and the control groups of this process
/// say. Where neither does, as much as one likes. Reads files.
std::uint64_t available_memory(const MachineFiles& files = {});

/// The most that this process had at once, in bytes; zero where that cannot be told. Not getrusage's, which counts our
/// parent's as ours. Reads files.
std::uint64_t peak_memory(const MachineFiles& files = {});

/// What the first processor calls itself; what kind it is where it does not say. Reads files.
std::string processor_model(const MachineFiles& files = {});

/// Whether this process runs in a container, whose files and host go with it. Not every container can be told from a
/// machine. Reads files.
bool in_container(const MachineFiles& files = {});

/// How this process was called, as a shell would show it. What stands behind an option that is named like a secret is
/// left out. Reads files; empty where that cannot be told.
std::string own_command(const MachineFiles& files = {});
/// A command in that form.
std::string shown_command(const std::vector<std::string>& arguments);

/// When a process was started, in ticks since the machine was: with its id it is the only one ever. Nothing where there
/// is none, or only what its parent has not taken notice of yet. Reads files.
std::optional<std::uint64_t> start_of_process(pid_t process, const MachineFiles& files = {});
/// In which namespace the process ids lie that this process sees; zero where that cannot be told.
std::uint64_t process_name_space(const MachineFiles& files = {});

/// What the calling thread is called; empty where that cannot be told.
std::string thread_name();

}  // namespace kiln
