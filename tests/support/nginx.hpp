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

#include "base/process.hpp"
#include "support/eventually.hpp"
#include "support/files.hpp"
#include "support/loopback.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_ca.hpp"

namespace kiln::test {

struct NginxOptions {
  bool tls = false;  ///< with the certificate of TestCa::shared()
  bool http2 = false;
  bool client_certificate = false;  ///< whether only clients with one of that authority are served
  std::string token;                ///< the bearer token that it wants, if any
  std::string address = "127.0.0.1";
  unsigned connections = 1024;  ///< at once
  unsigned workers = 1;         ///< processes that serve, besides the one that watches over them
};

/// Debian's nginx, a real one, on a free port with a data folder of its own, which goes when it does. It has
/// docs/nginx-kiln.conf, as users have, and ends with the thread that made it, however that ends.
class Nginx {
 public:
  using Options = NginxOptions;

  /// Whether tools/setup.sh has installed it.
  static bool available() { return access("/usr/sbin/nginx", X_OK) == 0 && access("/usr/bin/setpriv", X_OK) == 0; }

  explicit Nginx(Options options = {}) : options_(std::move(options)) {
    for (const char* folder : {"data/ac", "data/cas", "temporary"}) {
      std::filesystem::create_directories(folder_.path(folder));
    }
    start();
  }
  Nginx(const Nginx&) = delete;
  Nginx& operator=(const Nginx&) = delete;
  ~Nginx() { stop(); }

  /// https://127.0.0.1:…
  std::string url() const {
    return (options_.tls ? "https://" : "http://") + options_.address + ":" + std::to_string(port_);
  }
  std::uint16_t port() const { return port_; }
  /// Where `ac/` and `cas/` lie.
  std::string data() const { return folder_.path("data"); }
  std::string error_log() const { return slurp(folder_.path("error.log")); }

  /// Whoever connects now is refused.
  void stop() {
    if (!process_) return;
    resume();
    // One that is still starting its workers forgets what it was told.
    const auto told = [&] {
      ::kill(process_->id(), SIGTERM);
      return process_->wait(std::chrono::milliseconds(20)).has_value();
    };
    (void)eventually(told, std::chrono::seconds(5));
    process_.reset();
  }
  /// Again, on the same port. The log goes on.
  void start() {
    const Listener listener = listen_on(options_.address, port_, 4096);
    port_ = listener.port;
    spit(folder_.path("nginx.conf"), configuration());
    std::filesystem::remove(folder_.path("nginx.pid"));
    const Fd log(open(folder_.path("error.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    Process::Start start;
    start.arguments = {"/usr/bin/setpriv",
                       "--pdeathsig",
                       "TERM",
                       "/usr/sbin/nginx",
                       "-p",
                       folder_.path(),
                       "-e",
                       folder_.path("error.log"),
                       "-c",
                       folder_.path("nginx.conf")};
    // It takes a socket over as if from an nginx before it, so that nobody can take the port meanwhile.
    start.environment = {"PATH=/usr/bin:/bin:/usr/sbin", "NGINX=3;"};
    start.descriptors = {{log.get(), 1}, {log.get(), 2}, {listener.socket.get(), 3}};
    process_.emplace(Process::spawn(start).value());
    // It writes this file when it has understood its configuration and has its sockets.
    const bool began = eventually([&] { return std::filesystem::exists(folder_.path("nginx.pid")) || ended(); });
    if (!began || ended()) throw std::runtime_error("nginx did not start: " + error_log());
  }
  /// Connections are made and nothing is answered any more, until it is resumed.
  void pause() { ::kill(-process_->id(), SIGSTOP); }
  void resume() { ::kill(-process_->id(), SIGCONT); }
  /// From here on it wants this one. Restarts it.
  void set_token(std::string token) {
    stop();
    options_.token = std::move(token);
    start();
  }

  /// As if nobody had ever written to it.
  void clear() {
    for (const char* folder : {"data/ac", "data/cas"}) {
      std::filesystem::remove_all(folder_.path(folder));
      std::filesystem::create_directories(folder_.path(folder));
    }
  }

  /// What its own log says of a request.
  struct Request {
    std::uint64_t connection = 0;  ///< the number of its connection
    std::uint64_t number = 0;      ///< the how manieth of that connection
    std::string protocol;          ///< HTTP/1.1, HTTP/2.0
    std::string method;
    int status = 0;
    std::string uri;
  };
  /// So far. A request is logged a moment after its answer: ask eventually.
  std::vector<Request> log() const {
    std::vector<Request> all;
    std::istringstream lines(slurp(folder_.path("access.log")));
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      std::istringstream words(line);
      Request one;
      words >> one.connection >> one.number >> one.protocol >> one.method >> one.status >> one.uri;
      all.push_back(std::move(one));
    }
    return all;
  }
  std::size_t requests() const { return log().size(); }
  /// How many connections had a request so far.
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
    // Workers of root's would be nobody's, who may not enter our folder.
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
    if (!options_.token.empty()) {
      text += "if ($http_authorization != \"Bearer " + options_.token + "\") { return 401; }\n";
    }
    return text + "include " KILN_SOURCE_DIR "/docs/nginx-kiln.conf;\n}\n}\n";
  }

  Options options_;
  TemporaryDirectory folder_;
  std::uint16_t port_ = 0;
  std::optional<Process> process_;
};

}  // namespace kiln::test
