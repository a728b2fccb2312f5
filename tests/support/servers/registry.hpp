// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/process.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"
#include "support/servers/counting_forwarder.hpp"

namespace kiln::test {

/// A real docker-registry (Debian's) on a free port of the loopback with its own data directory, which is removed with
/// it. Clients reach it through a forwarder that counts bytes.
class Registry {
 public:
  /// Returns whether tools/setup.sh has installed it and skopeo.
  static bool available() {
    return access("/usr/bin/docker-registry", X_OK) == 0 && access("/usr/bin/skopeo", X_OK) == 0;
  }

  Registry() {
    write_text(directory_.path("config.yml"),
               "version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: " + directory_.path("data") +
                   "}}\nhttp: {addr: '127.0.0.1:0'}\n");
    const Fd log(open(directory_.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    Process::SpawnOptions start;
    start.arguments = {"/usr/bin/docker-registry", "serve", directory_.path("config.yml")};
    start.environment = {"PATH=/usr/bin:/bin"};
    start.descriptors = {{log.get(), 1}, {log.get(), 2}};
    process_.emplace(Process::spawn(start).value());
    // It logs the port that the system assigned.
    std::uint16_t port = 0;
    if (!eventually([&] { return (port = said_port()) != 0; })) {
      throw std::runtime_error("docker-registry did not start: " + read_text(directory_.path("log")));
    }
    forwarder_ = std::make_unique<CountingForwarder>(port);
  }
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Returns the skopeo name of an image in it: `docker://127.0.0.1:…/kernels:1`.
  std::string image(const std::string& name) const {
    return "docker://127.0.0.1:" + std::to_string(forwarder_->port()) + "/" + name;
  }
  /// Return the bytes that clients sent to it and received from it so far, including protocol headers.
  std::uint64_t received() const { return forwarder_->to_server(); }
  std::uint64_t sent() const { return forwarder_->to_client(); }
  /// Returns the total size of its blobs, each counted once.
  std::uint64_t stored() const {
    std::uint64_t bytes = 0;
    for (const std::string& file : files_below(directory_.path("data/docker/registry/v2/blobs"))) {
      bytes += std::filesystem::file_size(file);
    }
    return bytes;
  }

 private:
  std::uint16_t said_port() const {
    constexpr std::string_view kBefore = "listening on 127.0.0.1:";
    const std::string log = read_text(directory_.path("log"));
    const std::size_t at = log.find(kBefore);
    std::uint16_t port = 0;
    if (at == std::string::npos) return 0;
    const auto [end, error] = std::from_chars(log.data() + at + kBefore.size(), log.data() + log.size(), port);
    // The line may be incomplete.
    return error == std::errc() && end != log.data() + log.size() ? port : std::uint16_t{0};
  }

  TemporaryDirectory directory_;
  std::optional<Process> process_;  // killed before its directory is removed
  std::unique_ptr<CountingForwarder> forwarder_;
};

/// Runs Debian's skopeo. Returns an empty string on success, otherwise its output.
inline std::string skopeo(std::vector<std::string> arguments) {
  const TemporaryDirectory home;
  const Fd log(open(home.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  arguments.insert(arguments.begin(), {"/usr/bin/skopeo", "--insecure-policy"});
  Process::SpawnOptions start;
  start.arguments = std::move(arguments);
  start.environment = {"PATH=/usr/bin:/bin", "HOME=" + home.path(), "XDG_RUNTIME_DIR=" + home.path(),
                       "TMPDIR=" + home.path()};
  start.descriptors = {{log.get(), 1}, {log.get(), 2}};
  Result<Process> process = Process::spawn(start);
  if (!process) return process.error().message;
  const std::optional<Process::Exit> exit = process->wait(kHangTimeout);
  if (exit && exit->succeeded()) return "";
  return (exit ? "skopeo failed: " : "skopeo did not end: ") + read_text(home.path("log"));
}

/// Copies an image as docs/how-to/container-images.md describes: all manifests, without compressing layers, over plain
/// HTTP.
inline std::string skopeo_copy(const std::string& from, const std::string& to) {
  return skopeo({"copy", "--all", "--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false", from, to});
}

}  // namespace kiln::test
