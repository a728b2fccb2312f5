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

#include "base/process.hpp"
#include "support/counting_forwarder.hpp"
#include "support/eventually.hpp"
#include "support/files.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {

/// Debian's docker-registry, a real one, on a free port of the loopback with a data folder of its own, which goes when
/// it does. Clients reach it through a forwarder that counts.
class Registry {
 public:
  /// Whether tools/setup.sh has installed it, and skopeo.
  static bool available() {
    return access("/usr/bin/docker-registry", X_OK) == 0 && access("/usr/bin/skopeo", X_OK) == 0;
  }

  Registry() {
    spit(folder_.path("config.yml"), "version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: " +
                                         folder_.path("data") + "}}\nhttp: {addr: '127.0.0.1:0'}\n");
    const Fd log(open(folder_.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    Process::Start start;
    start.arguments = {"/usr/bin/docker-registry", "serve", folder_.path("config.yml")};
    start.environment = {"PATH=/usr/bin:/bin"};
    start.descriptors = {{log.get(), 1}, {log.get(), 2}};
    process_.emplace(Process::spawn(start).value());
    // It says which port the system gave it.
    std::uint16_t port = 0;
    if (!eventually([&] { return (port = said_port()) != 0; })) {
      throw std::runtime_error("docker-registry did not start: " + slurp(folder_.path("log")));
    }
    forwarder_ = std::make_unique<CountingForwarder>(port);
  }
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// What skopeo calls an image in it: `docker://127.0.0.1:…/kernels:1`.
  std::string image(const std::string& name) const {
    return "docker://127.0.0.1:" + std::to_string(forwarder_->port()) + "/" + name;
  }
  /// Bytes that clients sent to it so far, headers of the protocol included, and bytes that it sent to them.
  std::uint64_t received() const { return forwarder_->to_server(); }
  std::uint64_t sent() const { return forwarder_->to_client(); }
  /// Bytes of all blobs that it keeps now: each once, however often it was sent.
  std::uint64_t stored() const {
    std::uint64_t bytes = 0;
    for (const std::string& file : files_below(folder_.path("data/docker/registry/v2/blobs"))) {
      bytes += std::filesystem::file_size(file);
    }
    return bytes;
  }

 private:
  std::uint16_t said_port() const {
    constexpr std::string_view kBefore = "listening on 127.0.0.1:";
    const std::string log = slurp(folder_.path("log"));
    const std::size_t at = log.find(kBefore);
    std::uint16_t port = 0;
    if (at == std::string::npos) return 0;
    const auto [end, error] = std::from_chars(log.data() + at + kBefore.size(), log.data() + log.size(), port);
    // The line may be half written.
    return error == std::errc() && end != log.data() + log.size() ? port : std::uint16_t{0};
  }

  TemporaryDirectory folder_;
  std::optional<Process> process_;  // killed before its folder goes
  std::unique_ptr<CountingForwarder> forwarder_;
};

/// Runs Debian's skopeo. Empty when it went well, else what it said.
inline std::string skopeo(std::vector<std::string> arguments) {
  const TemporaryDirectory home;
  const Fd log(open(home.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  arguments.insert(arguments.begin(), {"/usr/bin/skopeo", "--insecure-policy"});
  Process::Start start;
  start.arguments = std::move(arguments);
  start.environment = {"PATH=/usr/bin:/bin", "HOME=" + home.path(), "XDG_RUNTIME_DIR=" + home.path(),
                       "TMPDIR=" + home.path()};
  start.descriptors = {{log.get(), 1}, {log.get(), 2}};
  Result<Process> process = Process::spawn(start);
  if (!process) return process.error().message;
  const std::optional<Process::Exit> exit = process->wait(kPatience);
  if (exit && exit->clean()) return "";
  return (exit ? "skopeo failed: " : "skopeo did not end: ") + slurp(home.path("log"));
}

/// As docs/oci.md says to copy: every manifest, and no layer compressed. Both ends are plain HTTP.
inline std::string skopeo_copy(const std::string& from, const std::string& to) {
  return skopeo({"copy", "--all", "--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false", from, to});
}

}  // namespace kiln::test
