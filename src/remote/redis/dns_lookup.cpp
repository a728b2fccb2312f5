// SPDX-License-Identifier: Apache-2.0
#include "remote/redis/dns_lookup.hpp"

#include <netdb.h>

#include <cstring>
#include <system_error>
#include <thread>

#include "base/catch_to_error.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/process/signals.hpp"

namespace kiln {
namespace {

using Addresses = std::vector<DnsLookup::Address>;

// Resolves a host. Returns 0 or the error code of getaddrinfo.
int look_up(const std::string& host, std::uint16_t port, int flags, Addresses& found) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &list);
  if (error != 0) return error;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    DnsLookup::Address address;
    if (one->ai_addrlen > sizeof address.storage) continue;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
    found.push_back(address);
  }
  return found.empty() ? EAI_NONAME : 0;
}

}  // namespace

struct DnsLookup::Pending {
  Mutex mutex;
  Condition answered;
  bool done KILN_GUARDED_BY(mutex) = false;
  int error KILN_GUARDED_BY(mutex) = 0;
  Addresses found KILN_GUARDED_BY(mutex);
};

Result<Addresses> DnsLookup::find(const std::string& host, std::uint16_t port, const Deadline& deadline) {
  Addresses numeric;
  if (look_up(host, port, AI_NUMERICHOST, numeric) == 0) return numeric;

  if (pending_ == nullptr) {
    pending_ = std::make_shared<Pending>();
    const ScopedSignalBlock blocked;
    try {
      std::thread([pending = pending_, host, port] {
        Addresses found;
        int error = EAI_MEMORY;
        ignore_failures([&] { error = look_up(host, port, 0, found); });
        const MutexLock lock(pending->mutex);
        pending->done = true;
        pending->error = error;
        pending->found = std::move(found);
        pending->answered.notify_all();
      }).detach();
    } catch (const std::exception& error) {
      pending_.reset();
      return make_error(Code::Unavailable, std::string("cannot start a DNS lookup thread: ") + error.what());
    }
  }
  const std::shared_ptr<Pending> pending = pending_;
  const MutexLock lock(pending->mutex);
  while (!pending->done) {
    if (deadline.remaining() <= std::chrono::nanoseconds(0))
      return make_error(Code::TimedOut, "cannot resolve '" + host + "': timed out");
    system_clock().wait_until(pending->answered, pending->mutex, deadline);
  }
  pending_.reset();  // the next connection resolves again: addresses change
  if (pending->error != 0) {
    return make_error(Code::Unavailable, "cannot resolve '" + host + "': " + gai_strerror(pending->error));
  }
  return pending->found;
}

}  // namespace kiln
