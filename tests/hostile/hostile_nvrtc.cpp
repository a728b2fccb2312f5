// SPDX-License-Identifier: Apache-2.0
// A compromised NVRTC. It executes each line `//! <attack> <argument>` of its source by raw system calls and writes a
// line `<attack>: done` or `<attack>: errno <number>` for each to its output. It also reads the included files through
// the C library as NVRTC does, so that kiln-worker can observe its reads. A source with `#error` does not compile.
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Program {
  std::string source;
  std::string output;
};

long run_program(const char* path) {
  const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    char* const arguments[] = {const_cast<char*>(path), nullptr};
    syscall(SYS_execve, path, arguments, nullptr);
    _exit(errno);
  }
  int status = 0;
  if (child < 0) return -1;
  waitpid(static_cast<pid_t>(child), &status, 0);
  errno = WEXITSTATUS(status);
  return status == 0 ? 0 : -1;
}

long exec_here(const char* path) {
  char* const arguments[] = {nullptr};  // denied by the sandbox before the path is resolved
  return syscall(SYS_execve, path, arguments, nullptr);
}

long open_file(const std::string& path, int flags) {
  const long fd = syscall(SYS_openat, AT_FDCWD, path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd >= 0) close(static_cast<int>(fd));
  return fd;
}

long read_memory(pid_t process) {
  char byte = 0;
  iovec here{&byte, 1};
  iovec there{reinterpret_cast<void*>(&run_program), 1};  // NOLINT: an address, which may be unmapped in that process
  const ssize_t got = process_vm_readv(process, &here, 1, &there, 1, 0);
  return got < 0 && errno == EFAULT ? 0 : got;  // the access was allowed
}

long trace(pid_t process) {
  const long traced = ptrace(PTRACE_SEIZE, process, nullptr, nullptr);
  if (traced == 0) ptrace(PTRACE_DETACH, process, nullptr, nullptr);
  return traced;
}

long has_capabilities() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  syscall(SYS_capget, &head, sets);
  errno = EPERM;
  return ((sets[0].effective | sets[0].permitted) & ~(1U << CAP_DAC_READ_SEARCH)) != 0 ? 0 : -1;
}

long attack(const std::string& what, const std::string& on) {
  const pid_t process = std::atoi(on.c_str());
  if (what == "socket") return socket(AF_INET, SOCK_STREAM, 0);
  if (what == "unix-socket") return socket(AF_UNIX, SOCK_STREAM, 0);
  if (what == "run") return run_program(on.c_str());
  if (what == "exec") return exec_here(on.c_str());
  if (what == "trace") return trace(process);
  if (what == "memory") return read_memory(process);
  if (what == "signal") return syscall(SYS_kill, process, 0);
  if (what == "limit") {
    rlimit limit{};
    return syscall(SYS_prlimit64, process, RLIMIT_NOFILE, nullptr, &limit);
  }
  if (what == "own-signal") return syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0);
  if (what == "mount") return mount("none", on.c_str(), "tmpfs", 0, nullptr);
  if (what == "read") return open_file(on, O_RDONLY);
  if (what == "list") return open_file(on, O_RDONLY | O_DIRECTORY);
  if (what == "write") return open_file(on, O_WRONLY | O_CREAT);
  if (what == "mode") return syscall(SYS_fchmodat, AT_FDCWD, on.c_str(), 0777, 0);
  if (what == "remove") return syscall(SYS_unlinkat, AT_FDCWD, on.c_str(), 0);
  if (what == "capabilities") return has_capabilities();
  if (what == "ask")
    return open(on.c_str(), O_RDONLY | O_CLOEXEC);  // the worker's `open`, which sends a request to the host
  if (what == "ask-to-write") return open(on.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  errno = ENOSYS;
  return -1;
}

// Searches the roots for a header as NVRTC does.
std::string include(const std::string& name, const std::vector<std::string>& roots) {
  for (const std::string& root : roots) {
    const std::string path = root.empty() ? name : root + "/" + name;
    struct stat status;
    if (stat(path.c_str(), &status) != 0) continue;
    FILE* const file = std::fopen(path.c_str(), "r");
    if (file == nullptr) continue;
    char buffer[256];
    const std::size_t size = std::fread(buffer, 1, sizeof buffer, file);
    std::fclose(file);
    return std::string(buffer, size);
  }
  return "missing\n";
}

std::string between(const std::string& line, const char* start, char end) {
  const std::size_t at = line.find(start);
  if (at == std::string::npos) return {};
  const std::size_t from = at + std::strlen(start);
  return line.substr(from, line.find(end, from) - from);
}

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(int error) { return error == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION"; }
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return 0;
}
int nvrtcGetSupportedArchs(int* architectures) {
  *architectures = 80;
  return 0;
}
int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{source, {}};
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return 0;
}
int nvrtcAddNameExpression(Program*, const char*) { return 0; }
int nvrtcGetLoweredName(Program*, const char* name, const char** lowered) {
  *lowered = name;
  return 0;
}
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  std::vector<std::string> roots;
  for (int i = 0; i < count; ++i) {
    if (std::strncmp(options[i], "-I", 2) == 0) roots.emplace_back(options[i] + 2);
  }
  std::istringstream lines(program->source);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("#error", 0) == 0) return 6;
    if (line.rfind("#include <", 0) == 0) program->output += include(between(line, "<", '>'), roots);
    if (line.rfind("#include \"", 0) == 0) program->output += include(between(line, "\"", '"'), {""});
    if (line.rfind("#if __has_include(\"", 0) == 0) program->output += include(between(line, "(\"", '"'), {""});
    if (line.rfind("//! ", 0) != 0) continue;
    std::istringstream words(line.substr(4));
    std::string what;
    std::string on;
    words >> what >> on;
    const long result = attack(what, on);
    program->output += what + ": " + (result >= 0 ? "done" : "errno " + std::to_string(errno)) + "\n";
  }
  return 0;
}
int nvrtcGetProgramLogSize(Program*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetProgramLog(Program*, char* log) {
  *log = '\0';
  return 0;
}
int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = program->output.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* bytes) {
  program->output.copy(bytes, program->output.size());
  return 0;
}
int nvrtcGetPTXSize(Program* program, std::size_t* size) { return nvrtcGetCUBINSize(program, size); }
int nvrtcGetPTX(Program* program, char* bytes) { return nvrtcGetCUBIN(program, bytes); }
int nvrtcGetLTOIRSize(Program* program, std::size_t* size) { return nvrtcGetCUBINSize(program, size); }
int nvrtcGetLTOIR(Program* program, char* bytes) { return nvrtcGetCUBIN(program, bytes); }
}
