#include "redis/name_lookup.hpp"

#include <netdb.h>

#include <cstring>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "base/mutex.hpp"
#include "base/signals.hpp"

namespace kiln {
namespace {

using Addresses = std::vector<NameLookup::Address>;

// Zero, or getaddrinfo's code.
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
    NameLookup::Address address;
    if (one->ai_addrlen > sizeof address.storage) continue;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
    found.push_back(address);
  }
  return found.empty() ? EAI_NONAME : 0;
}

}  // namespace

struct NameLookup::Pending {
  Mutex mutex;
  Condition answered;
  bool done KILN_GUARDED_BY(mutex) = false;
  int error KILN_GUARDED_BY(mutex) = 0;
  Addresses found KILN_GUARDED_BY(mutex);
};

Result<Addresses> NameLookup::find(const std::string& host, std::uint16_t port, std::chrono::nanoseconds limit) {
  Addresses numeric;
  if (look_up(host, port, AI_NUMERICHOST, numeric) == 0) return numeric;

  if (pending_ == nullptr) {
    pending_ = std::make_shared<Pending>();
    const SignalsBlocked blocked;
    try {
      std::thread([pending = pending_, host, port] {
        Addresses found;
        int error = EAI_MEMORY;
        attempt([&] { error = look_up(host, port, 0, found); });
        const MutexLock lock(pending->mutex);
        pending->done = true;
        pending->error = error;
        pending->found = std::move(found);
        pending->answered.notify_all();
      }).detach();
    } catch (const std::exception& error) {
      pending_.reset();
      return failure(Code::Unavailable, std::string("no thread to look a name up: ") + error.what());
    }
  }
  const std::shared_ptr<Pending> pending = pending_;
  const Deadline deadline(system_clock(), limit);
  const MutexLock lock(pending->mutex);
  while (!pending->done) {
    const auto left = deadline.left();
    if (left <= std::chrono::nanoseconds(0))
      return failure(Code::TimedOut, "the name " + host + " was not found in time");
    (void)pending->answered.wait_for(pending->mutex, left);
  }
  pending_.reset();  // the next connection asks again: names move
  if (pending->error != 0) {
    return failure(Code::Unavailable, "the name " + host + " leads nowhere: " + gai_strerror(pending->error));
  }
  return pending->found;
}

}  // namespace kiln
