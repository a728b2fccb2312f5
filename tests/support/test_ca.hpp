#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "support/files.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {

/// An authority of our own, made by `openssl`, with a certificate for a server on 127.0.0.1 and one for a client. Its
/// files go when it does.
class TestCa {
 public:
  TestCa() {
    spit(folder_.path("server.ext"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
    spit(folder_.path("client.ext"), "extendedKeyUsage=clientAuth\n");
    run({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=kiln test authority", "-keyout", folder_.path("ca.key"), "-out", ca()});
    for (const std::string who : {"server", "client"}) {
      run({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
           "/CN=kiln test " + who, "-keyout", folder_.path(who + ".key"), "-out", folder_.path(who + ".csr")});
      run({"x509", "-req", "-in", folder_.path(who + ".csr"), "-CA", ca(), "-CAkey", folder_.path("ca.key"), "-days",
           "2", "-set_serial", who == "server" ? "2" : "3", "-extfile", folder_.path(who + ".ext"), "-out",
           folder_.path(who + ".pem")});
    }
  }

  /// The one of this process: it takes a tenth of a second to make.
  static const TestCa& shared() {
    static const TestCa made;
    return made;
  }

  std::string ca() const { return folder_.path("ca.pem"); }
  std::string server_cert() const { return folder_.path("server.pem"); }
  std::string server_key() const { return folder_.path("server.key"); }
  std::string client_cert() const { return folder_.path("client.pem"); }
  std::string client_key() const { return folder_.path("client.key"); }

 private:
  void run(std::vector<std::string> arguments) const {
    const Fd log(open(folder_.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    Process::Start start;
    arguments.insert(arguments.begin(), "/usr/bin/openssl");
    start.arguments = std::move(arguments);
    start.environment = {"PATH=/usr/bin:/bin"};
    start.descriptors = {{log.get(), 1}, {log.get(), 2}};
    const std::optional<Process::Exit> exit = Process::spawn(start).value().wait(kPatience);
    if (!exit || !exit->clean()) throw std::runtime_error("openssl failed: " + slurp(folder_.path("log")));
  }

  TemporaryDirectory folder_;
};

}  // namespace kiln::test
