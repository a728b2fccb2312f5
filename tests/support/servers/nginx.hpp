// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/process/process.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/servers/loopback.hpp"
#include "support/servers/test_ca.hpp"

namespace kiln::test {

struct NginxOptions {
  bool tls = false;  ///< with the certificate of TestCa::shared()
  bool http2 = false;
  bool client_certificate = false;  ///< serve only clients with a certificate of that CA
  std::string token;                ///< required bearer token, if any
  std::string address = "127.0.0.1";
  unsigned connections = 1024;  ///< maximum number of concurrent connections
  unsigned workers = 1;         ///< worker processes, in addition to the master process
  unsigned rate = 0;            ///< bytes per second of one response; 0 means unlimited
};

/// A real nginx (Debian's) on a free port with its own data directory, which is removed with it. It uses
/// examples/nginx/nginx-kiln.conf, as users do, and ends with the thread that created it, however that ends.
class Nginx {
 public:
  using Options = NginxOptions;

  /// Returns whether tools/setup.sh has installed it.
  static bool available() { return access("/usr/sbin/nginx", X_OK) == 0 && access("/usr/bin/setpriv", X_OK) == 0; }

  explicit Nginx(Options options = {}) : options_(std::move(options)) {
    for (const char* directory : {"data/ac", "data/cas", "temporary"}) {
      std::filesystem::create_directories(directory_.path(directory));
    }
    start();
  }
  Nginx(const Nginx&) = delete;
  Nginx& operator=(const Nginx&) = delete;
  ~Nginx() { stop(); }

  /// Returns https://127.0.0.1:…
  std::string url() const {
    return (options_.tls ? "https://" : "http://") + options_.address + ":" + std::to_string(port_);
  }
  std::uint16_t port() const { return port_; }
  /// Returns the directory of `ac/` and `cas/`.
  std::string data() const { return directory_.path("data"); }
  std::string error_log() const { return read_text(directory_.path("error.log")); }

  /// Stops the server. New connections are refused.
  void stop() {
    if (!process_) return;
    resume();
    // nginx ignores the signal while it starts its workers, so it is repeated.
    const auto reported = [&] {
      ::kill(process_->id(), SIGTERM);
      return process_->wait(std::chrono::milliseconds(20)).has_value();
    };
    (void)eventually(reported, std::chrono::seconds(5));
    process_.reset();
  }
  /// Starts it again on the same port. The log continues.
  void start() {
    const Listener listener = listen_on(options_.address, port_, 4096);
    port_ = listener.port;
    write_text(directory_.path("nginx.conf"), configuration());
    std::filesystem::remove(directory_.path("nginx.pid"));
    const Fd log(open(directory_.path("error.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    Process::SpawnOptions start;
    start.arguments = {"/usr/bin/setpriv",
                       "--pdeathsig",
                       "TERM",
                       "/usr/sbin/nginx",
                       "-p",
                       directory_.path(),
                       "-e",
                       directory_.path("error.log"),
                       "-c",
                       directory_.path("nginx.conf")};
    // It inherits the socket as from a previous nginx, so that no other process can take the port.
    start.environment = {"PATH=/usr/bin:/bin:/usr/sbin", "NGINX=3;"};
    start.descriptors = {{log.get(), 1}, {log.get(), 2}, {listener.socket.get(), 3}};
    process_.emplace(Process::spawn(start).value());
    // nginx writes this file after it has parsed its configuration and opened its sockets.
    const bool began = eventually([&] { return std::filesystem::exists(directory_.path("nginx.pid")) || ended(); });
    if (!began || ended()) throw std::runtime_error("nginx did not start: " + error_log());
  }
  /// Pauses the server until `resume`: connections are accepted by the kernel, but there are no responses.
  void pause() { ::kill(-process_->id(), SIGSTOP); }
  void resume() { ::kill(-process_->id(), SIGCONT); }
  /// Changes the required token and restarts the server.
  void set_token(std::string token) {
    stop();
    options_.token = std::move(token);
    start();
  }

  /// Removes all objects.
  void clear() {
    for (const char* directory : {"data/ac", "data/cas"}) {
      std::filesystem::remove_all(directory_.path(directory));
      std::filesystem::create_directories(directory_.path(directory));
    }
  }

  /// A request in nginx's log.
  struct Request {
    std::uint64_t connection = 0;  ///< connection number
    std::uint64_t number = 0;      ///< index of the request in its connection
    std::string protocol;          ///< HTTP/1.1, HTTP/2.0
    std::string method;
    int status = 0;
    std::string uri;
  };
  /// Returns the log so far. nginx logs a request shortly after its response: use `eventually`.
  std::vector<Request> log() const {
    std::vector<Request> all;
    std::istringstream lines(read_text(directory_.path("access.log")));
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      std::istringstream words(line);
      Request one;
      words >> one.connection >> one.number >> one.protocol >> one.method >> one.status >> one.uri;
      all.push_back(std::move(one));
    }
    return all;
  }
  std::size_t requests() const { return log().size(); }
  /// Returns the number of connections that had a request so far.
  std::size_t connections() const {
    std::set<std::uint64_t> numbers;
    for (const Request& one : log()) numbers.insert(one.connection);
    return numbers.size();
  }

 private:
  bool ended() { return process_->wait(std::chrono::milliseconds(0)).has_value(); }

  std::string configuration() const {
    std::string text = "daemon off;\npid nginx.pid;\nerror_log error.log warn;\n";
    text += "worker_processes " + std::to_string(options_.workers) + ";\n";
    // As root, nginx would run its workers as another user, which cannot enter the test directory.
    if (geteuid() == 0) text += "user root;\n";
    text += "worker_rlimit_nofile " + std::to_string(2 * options_.connections + 64) + ";\n";
    text += "events { worker_connections " + std::to_string(options_.connections) + "; }\nhttp {\n";
    text += "log_format kiln '$connection $connection_requests $server_protocol $request_method $status $uri';\n";
    text += "access_log access.log kiln;\nsendfile on;\nkeepalive_requests 1000000;\n";
    for (const char* what : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
      text += std::string(what) + "_temp_path temporary/" + what + ";\n";
    }
    text += "server {\nlisten " + options_.address + ":" + std::to_string(port_) + (options_.tls ? " ssl" : "") +
            (options_.http2 ? " http2" : "") + ";\nroot data;\n";
    if (options_.tls) {
      const TestCa& ca = TestCa::shared();
      text += "ssl_certificate " + ca.server_cert() + ";\nssl_certificate_key " + ca.server_key() + ";\n";
      if (options_.client_certificate) text += "ssl_client_certificate " + ca.ca() + ";\nssl_verify_client on;\n";
    }
    if (options_.rate != 0) text += "limit_rate " + std::to_string(options_.rate) + ";\n";
    if (!options_.token.empty()) {
      text += "if ($http_authorization != \"Bearer " + options_.token + "\") { return 401; }\n";
    }
    return text + "include " KILN_SOURCE_DIR "/examples/nginx/nginx-kiln.conf;\n}\n}\n";
  }

  Options options_;
  TemporaryDirectory directory_;
  std::uint16_t port_ = 0;
  std::optional<Process> process_;
};

}  // namespace kiln::test
