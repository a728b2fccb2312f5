// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/fleet_process.hpp"
#include "support/processes/virtual_hosts.hpp"
#include "support/servers/nginx.hpp"
#include "support/servers/redis.hpp"
#include "trust/keys.hpp"

namespace kiln::test {

/// Returns a number that a campaign sets in the environment, or the default for CI.
unsigned campaign_number(const char* variable, unsigned otherwise);

std::int64_t monotonic_now();

/// The trust configuration of a fleet: one authority, which certifies each host's own signing key.
class FleetTrust {
 public:
  explicit FleetTrust(const std::string& directory);
  /// Returns the policy file of every host.
  std::string policy() const { return directory_ + "/trust.toml"; }
  /// Creates a key and a certificate for a host. Returns the variables with which it publishes.
  Variables signer(const std::string& host) const;
  const SecretKey& authority() const { return authority_; }

 private:
  std::string directory_;
  SecretKey authority_;
};

/// Returns the variables that separate a host from others: cache, home and local directories.
Variables own_directories(const std::string& directory);

/// Real servers and hosts in private networks.
class FleetFixture {
 public:
  /// Returns the reason why this machine cannot run it, or an empty string.
  static std::string unavailable();

  explicit FleetFixture(unsigned hosts);

  /// Returns the configuration of a program on this host: only KILN_* variables.
  Variables variables(unsigned host) const;
  /// Starts `fleet_main` with these arguments on a host.
  FleetProcess start(unsigned host, std::vector<std::string> arguments, const Variables& more = {});
  /// Starts another program on a host.
  FleetProcess run(unsigned host, std::vector<std::string> command, const Variables& more = {});

  /// Clears every cache and the servers.
  void make_cold();

  std::string path(const std::string& name) const { return directory_.path(name); }
  const std::string& headers() const { return headers_; }
  VirtualHosts& hosts() { return hosts_; }
  const FleetTrust& trust() const { return trust_; }
  /// Returns the number of requests that nginx has received.
  std::size_t requests() const { return nginx_->requests(); }
  /// Return the number of Redis connections, Redis calls of a command, and objects in a bucket of nginx.
  unsigned redis_connections() const;
  std::uint64_t redis_calls(const std::string& command) const;
  std::uint64_t stored(const std::string& bucket) const;

 private:
  TemporaryDirectory directory_;
  VirtualHosts hosts_;
  FleetTrust trust_;
  std::string headers_;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<Nginx> nginx_;
  std::vector<Variables> signers_;
  unsigned started_ = 0;
};

/// Returns the sum of a count over the last lines of all processes.
unsigned total(const std::vector<FleetProcess>& processes, const std::string& word, const std::string& name);
/// Returns all values of a number, sorted.
std::vector<double> sorted_numbers(const std::vector<FleetProcess>& processes, const std::string& word,
                                   const std::string& name);
/// Formats values: "12.1 13.0 14.2".
std::string spread(const std::vector<double>& values, const char* format = "%.1f");
double median(std::vector<double> values);
/// Returns the events that a healthy fleet does not emit, each with its count.
std::string problems(const std::vector<FleetProcess>& processes);

}  // namespace kiln::test
