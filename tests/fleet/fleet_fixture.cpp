// SPDX-License-Identifier: Apache-2.0
#include "fleet/fleet_fixture.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/clock.hpp"
#include "trust/signed_statement.hpp"

namespace kiln::test {
namespace fs = std::filesystem;

unsigned campaign_number(const char* variable, unsigned otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr ? static_cast<unsigned>(std::atoi(value)) : otherwise;
}

std::int64_t monotonic_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FleetTrust::FleetTrust(const std::string& directory) : directory_(directory), authority_(SecretKey::generate()) {
  fs::create_directories(directory_);
  write_text(policy(), "[[key]]\npublic = \"" + authority_.public_key().text() +
                           "\"\nnamespaces = [\"fleet/*\"]\n\n[[live]]\nnamespace = \"fleet/live\"\ndays = 7\n");
}

Variables FleetTrust::signer(const std::string& host) const {
  const SecretKey key = SecretKey::generate();
  const std::string key_file = directory_ + "/" + host + ".key";
  const std::string certificate_file = directory_ + "/" + host + ".certificate";
  if (Status written = key.write(key_file); !written) throw std::runtime_error(written.error().message);
  const std::uint64_t tomorrow = day_of(system_clock().wall()) + 1;
  write_text(certificate_file, Certificate::make(authority_, key.public_key(), "fleet/live", tomorrow).text() + "\n");
  return {{"KILN_REMOTE_SIGNING_KEY", key_file}, {"KILN_REMOTE_CERTIFICATE", certificate_file}};
}

Variables own_directories(const std::string& directory) {
  fs::create_directories(directory + "/home");
  fs::create_directories(directory + "/run");
  fs::permissions(directory + "/run", fs::perms::owner_all);
  return {
      {"KILN_CACHE_DIR", directory + "/cache"}, {"HOME", directory + "/home"}, {"XDG_RUNTIME_DIR", directory + "/run"}};
}

std::string FleetFixture::unavailable() {
  if (!RedisServer::available()) return "redis-server is not installed (tools/setup.sh)";
  if (!Nginx::available()) return "nginx is not installed (tools/setup.sh)";
  return VirtualHosts::unavailable();
}

FleetFixture::FleetFixture(unsigned hosts)
    : hosts_(hosts), trust_(directory_.path("trust")), headers_(directory_.path("headers")) {
  fs::create_directories(headers_);
  write_text(headers_ + "/fleet.h", "constexpr int kFleet = 3;\n");
  const auto inside = hosts_.enter_servers();
  RedisServer::Options redis;
  redis.address = "0.0.0.0";
  redis_ = std::make_unique<RedisServer>(redis);
  Nginx::Options nginx;
  nginx.address = VirtualHosts::kServer;
  nginx.connections = 4096;
  nginx_ = std::make_unique<Nginx>(nginx);
  for (unsigned i = 0; i < hosts; ++i) signers_.push_back(trust_.signer("host" + std::to_string(i)));
}

Variables FleetFixture::variables(unsigned host) const {
  Variables all = own_directories(directory_.path("host" + std::to_string(host)));
  all.merge(Variables(signers_.at(host)));
  all["KILN_REMOTE"] = nginx_->url();
  all["KILN_LEASE"] = "redis://" + std::string(VirtualHosts::kServer) + ":" + std::to_string(redis_->port());
  all["KILN_TRUST"] = trust_.policy();
  all["KILN_PCH"] = "off";
  all["KILN_JOBS"] = "1";  // each of the hosts would start as many workers as this machine has cores
  // All hosts share the cores of this machine with the servers and the compilers, so responses are slow.
  all["KILN_REMOTE_BUDGET"] = "10000";
  return all;
}

FleetProcess FleetFixture::start(unsigned host, std::vector<std::string> arguments, const Variables& more) {
  arguments.insert(arguments.begin(), KILN_FLEET_MAIN);
  arguments.push_back("root=" + headers_);
  return run(host, std::move(arguments), more);
}

FleetProcess FleetFixture::run(unsigned host, std::vector<std::string> command, const Variables& more) {
  Variables all = variables(host);
  for (const auto& [name, value] : more) all[name] = value;
  const auto inside = hosts_.enter(host);
  return {std::move(command), all, directory_.path("output" + std::to_string(started_++)), directory_.path()};
}

void FleetFixture::make_cold() {
  for (unsigned i = 0; i < hosts_.count(); ++i) fs::remove_all(directory_.path("host" + std::to_string(i)));
  nginx_->clear();
  const auto inside = hosts_.enter_servers();
  (void)redis_->ask({"flushall"});
  (void)redis_->ask({"config", "resetstat"});
}

unsigned FleetFixture::redis_connections() const {
  const auto inside = hosts_.enter_servers();
  const std::string said = redis_->ask({"info", "clients"});
  const std::string before = "connected_clients:";
  const std::size_t at = said.find(before);
  // This query has a connection too.
  return at == std::string::npos ? 0 : static_cast<unsigned>(std::atoi(said.c_str() + at + before.size())) - 1;
}

std::uint64_t FleetFixture::redis_calls(const std::string& command) const {
  const auto inside = hosts_.enter_servers();
  return redis_->calls(command);
}

std::uint64_t FleetFixture::stored(const std::string& bucket) const {
  return files_below(nginx_->data() + "/" + bucket).size();
}

unsigned total(const std::vector<FleetProcess>& processes, const std::string& word, const std::string& name) {
  double sum = 0;
  for (const FleetProcess& process : processes) sum += process.number(word, name);
  return static_cast<unsigned>(sum);
}

std::vector<double> sorted_numbers(const std::vector<FleetProcess>& processes, const std::string& word,
                                   const std::string& name) {
  std::vector<double> numbers;
  for (const FleetProcess& process : processes) numbers.push_back(process.number(word, name));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string spread(const std::vector<double>& values, const char* format) {
  std::string text;
  for (const double value : values) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, format, value);
    text += (text.empty() ? "" : " ") + std::string(buffer);
  }
  return text;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::string problems(const std::vector<FleetProcess>& processes) {
  std::map<std::string, unsigned> reported;
  for (const FleetProcess& process : processes) {
    std::istringstream lines(process.output());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("event ") || line.starts_with("error ")) ++reported[line];
    }
  }
  std::string text;
  for (const auto& [line, times] : reported) text += std::to_string(times) + " × " + line + "\n";
  return text;
}

}  // namespace kiln::test
