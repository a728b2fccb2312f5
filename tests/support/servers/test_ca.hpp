// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/process/process.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {

/// A test CA, created with `openssl`, with a certificate for a server on 127.0.0.1 and one for a client. Its files are
/// removed with it.
class TestCa {
 public:
  TestCa() {
    write_text(directory_.path("server.ext"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
    write_text(directory_.path("client.ext"), "extendedKeyUsage=clientAuth\n");
    run({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=kiln test authority", "-keyout", directory_.path("ca.key"), "-out", ca()});
    for (const std::string who : {"server", "client"}) {
      run({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
           "/CN=kiln test " + who, "-keyout", directory_.path(who + ".key"), "-out", directory_.path(who + ".csr")});
      run({"x509", "-req", "-in", directory_.path(who + ".csr"), "-CA", ca(), "-CAkey", directory_.path("ca.key"),
           "-days", "2", "-set_serial", who == "server" ? "2" : "3", "-extfile", directory_.path(who + ".ext"), "-out",
           directory_.path(who + ".pem")});
    }
  }

  /// Returns the instance of this process: creating one takes 0.1 s.
  static const TestCa& shared() {
    static const TestCa made;
    return made;
  }

  std::string ca() const { return directory_.path("ca.pem"); }
  std::string server_cert() const { return directory_.path("server.pem"); }
  std::string server_key() const { return directory_.path("server.key"); }
  std::string client_cert() const { return directory_.path("client.pem"); }
  std::string client_key() const { return directory_.path("client.key"); }

 private:
  void run(std::vector<std::string> arguments) const {
    const Fd log(open(directory_.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    Process::SpawnOptions start;
    arguments.insert(arguments.begin(), "/usr/bin/openssl");
    start.arguments = std::move(arguments);
    start.environment = {"PATH=/usr/bin:/bin"};
    start.descriptors = {{log.get(), 1}, {log.get(), 2}};
    const std::optional<Process::Exit> exit = Process::spawn(start).value().wait(kHangTimeout);
    if (!exit || !exit->succeeded()) throw std::runtime_error("openssl failed: " + read_text(directory_.path("log")));
  }

  TemporaryDirectory directory_;
};

}  // namespace kiln::test
