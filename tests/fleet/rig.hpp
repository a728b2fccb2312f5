#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/fleet_process.hpp"
#include "support/hosts.hpp"
#include "support/nginx.hpp"
#include "support/redis.hpp"
#include "support/temporary_directory.hpp"
#include "trust/keys.hpp"

namespace kiln::test {

/// A number that a campaign sets, or what CI takes.
unsigned campaign_number(const char* variable, unsigned otherwise);

std::int64_t monotonic_now();

/// Whom the hosts of a fleet believe: one authority, by whose leave each of them publishes in its own name.
class FleetTrust {
 public:
  explicit FleetTrust(const std::string& folder);
  /// The policy file of every host.
  std::string policy() const { return folder_ + "/trust.toml"; }
  /// A key and a certificate of its own for a host, and the variables by which it publishes.
  Variables signer(const std::string& host) const;
  const SecretKey& authority() const { return authority_; }

 private:
  std::string folder_;
  SecretKey authority_;
};

/// The variables by which a host is a host of its own: cache, home, and folder for what is local to it.
Variables own_folders(const std::string& folder);

/// Real servers and hosts in a network of their own.
class FleetRig {
 public:
  /// Empty, or what this machine lacks.
  static std::string unavailable();

  explicit FleetRig(unsigned hosts);

  /// What a program of this host is configured by: KILN_* variables alone.
  Variables variables(unsigned host) const;
  /// `fleet_main`'s arguments, on a host.
  FleetProcess start(unsigned host, std::vector<std::string> arguments, const Variables& more = {});
  /// Any other program.
  FleetProcess run(unsigned host, std::vector<std::string> command, const Variables& more = {});

  /// Every cache, and what the servers have, as at the beginning.
  void make_cold();

  std::string path(const std::string& name) const { return folder_.path(name); }
  const std::string& headers() const { return headers_; }
  Hosts& hosts() { return hosts_; }
  const FleetTrust& trust() const { return trust_; }
  /// How many requests nginx has had.
  std::size_t requests() const { return nginx_->requests(); }
  /// How many connections Redis has, how many entries nginx has.
  unsigned redis_connections() const;
  std::uint64_t redis_calls(const std::string& command) const;
  std::uint64_t stored(const std::string& shelf) const;

 private:
  TemporaryDirectory folder_;
  Hosts hosts_;
  FleetTrust trust_;
  std::string headers_;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<Nginx> nginx_;
  std::vector<Variables> signers_;
  unsigned started_ = 0;
};

/// The sum of a count over the last lines of all processes.
unsigned total(const std::vector<FleetProcess>& processes, const std::string& word, const std::string& name);
/// All values of a number, sorted.
std::vector<double> sorted_numbers(const std::vector<FleetProcess>& processes, const std::string& word,
                                   const std::string& name);
/// "12.1 13.0 14.2".
std::string spread(const std::vector<double>& values, const char* format = "%.1f");
double median(std::vector<double> values);
/// The events that a fleet that is well has none of, each with how often it was told.
std::string troubles(const std::vector<FleetProcess>& processes);

}  // namespace kiln::test
