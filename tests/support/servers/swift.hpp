// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/process/process.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/servers/loopback.hpp"

namespace kiln::test {

/// A real OpenStack Swift (Debian's) with its S3 interface, which verifies signatures and times, on a free port of the
/// loopback with its own data directory. It ends with this object and if the test dies.
class Swift {
 public:
  // Users of swift_server.py. `other` is a user without rights for the buckets of `owner`.
  static constexpr const char* kOwner = "test:owner";
  static constexpr const char* kOwnerKey = "owner-key";
  static constexpr const char* kOther = "test:other";
  static constexpr const char* kOtherKey = "other-key";

  /// Returns why it cannot run here, or an empty string.
  static std::string unavailable() {
    if (access("/usr/lib/python3/dist-packages/swift/common/middleware/s3api", R_OK) != 0) {
      return "Swift is not installed; run tools/setup.sh";
    }
    TemporaryDirectory directory;
    write_text(directory.path("file"), "");
    if (setxattr(directory.path("file").c_str(), "user.swift.metadata", "x", 1, 0) != 0) {
      return "Swift requires extended attributes, which the file system of the temporary directory does not have";
    }
    return {};
  }

  Swift() {
    const Listener listener = listen_on();
    port_ = listener.port;
    const Fd log(open(directory_.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    Process::SpawnOptions start;
    start.arguments = {"/usr/bin/setpriv",
                       "--pdeathsig",
                       "KILL",
                       "/usr/bin/python3",
                       KILN_SOURCE_DIR "/tests/support/servers/swift_server.py",
                       directory_.path("swift"),
                       "3"};
    start.environment = {"PATH=/usr/bin:/bin"};
    start.descriptors = {{log.get(), 1}, {log.get(), 2}, {listener.socket.get(), 3}};
    process_.emplace(Process::spawn(start).value());
    const auto ready = [&] { return std::filesystem::exists(directory_.path("swift/ready")) || ended(); };
    if (!eventually(ready, std::chrono::seconds(60)) || ended()) {
      throw std::runtime_error("Swift did not start: " + read_text(directory_.path("log")));
    }
  }
  Swift(const Swift&) = delete;
  Swift& operator=(const Swift&) = delete;
  ~Swift() {
    resume();
    ::kill(process_->id(), SIGKILL);
    (void)process_->wait(std::chrono::seconds(5));
  }

  /// Returns http://127.0.0.1:…, or http://localhost:…, which also serves virtual hosts.
  std::string url(const std::string& host = "127.0.0.1") const {
    return "http://" + host + ":" + std::to_string(port_);
  }
  /// Pauses the server until `resume`: connections are accepted by the kernel, but there are no responses.
  void pause() { ::kill(process_->id(), SIGSTOP); }
  void resume() { ::kill(process_->id(), SIGCONT); }

 private:
  bool ended() { return process_->wait(std::chrono::milliseconds(0)).has_value(); }

  TemporaryDirectory directory_;
  std::uint16_t port_ = 0;
  std::optional<Process> process_;
};

}  // namespace kiln::test
