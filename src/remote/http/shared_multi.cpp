// SPDX-License-Identifier: Apache-2.0
#include "remote/http/shared_multi.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>

#include "base/error.hpp"
#include "base/process/process_lifecycle.hpp"

namespace kiln {
namespace {

// Interval between two interrupt checks, short enough that a user who presses Ctrl-C does not notice it.
constexpr std::chrono::nanoseconds kInterruptInterval = std::chrono::milliseconds(40);
// Maximum of one wait; callers wait in a loop.
constexpr std::chrono::nanoseconds kMaxWait = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<SharedMulti>> SharedMulti::open(std::shared_ptr<const CurlLibrary> curl, bool tls) {
  // Not curl_multi_wakeup, which libcurl has only since version 7.68.
  Fd wakeup(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wakeup) {
    return make_error(Code::Unavailable,
                      "cannot create an eventfd: " + errno_message(errno) + "; raise the limit of open files");
  }
  std::unique_ptr<SharedMulti> made(new SharedMulti(std::move(curl), std::move(wakeup), tls));
  if (made->multi_ == nullptr) throw std::bad_alloc();
  const auto set = [&](CURLMoption option, long value) {
    (void)made->curl_->multi_setopt(made->multi_, option, value);
  };
  set(CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
  set(CURLMOPT_MAX_HOST_CONNECTIONS, kMaxConnections);
  set(CURLMOPT_MAXCONNECTS, kMaxConnections);
  return made;
}

SharedMulti::~SharedMulti() {
  // libcurl's TLS library may already be cleaned up, and the connections end with the process anyway.
  if (!process_is_ending()) (void)curl_->multi_cleanup(multi_);
}

CURLcode SharedMulti::perform(CURL* handle, const Deadline& deadline) {
  InterruptCheck* const interrupt = deadline.interrupt();
  const auto slice = interrupt != nullptr ? kInterruptInterval : std::chrono::nanoseconds::max();
  Transfer own{.handle = handle};
  (void)curl_->easy_setopt(handle, CURLOPT_PRIVATE, static_cast<void*>(&own));
  const MutexLock lock(mutex_);
  // Waits for a connection being opened, which can perhaps be shared, rather than opening another one.
  const bool may_share = multiplexing_ != Multiplexing::Unavailable;
  (void)curl_->easy_setopt(handle, CURLOPT_PIPEWAIT, may_share ? 1L : 0L);
  transfers_.push_back(&own);
  if (driven_) wake_driver();
  auto polled = system_clock().steady();
  while (own.state != Transfer::State::Done) {
    const std::chrono::nanoseconds left = deadline.remaining();
    if (own.state == Transfer::State::Abandoned || left > std::chrono::nanoseconds::zero()) {
      // An abandoned transfer ends with the next round of the driver and needs no deadline.
      const auto longest = own.state == Transfer::State::Abandoned ? kMaxWait : std::min(left, slice);
      if (!driven_) {
        drive(own, longest);
      } else {
        own.waiting = true;
        system_clock().wait(own.changed, mutex_, longest);
        own.waiting = false;
      }
    } else {
      const bool interrupted = interrupt != nullptr && interrupt->is_interrupted();
      abandon(own, interrupted ? CURLE_ABORTED_BY_CALLBACK : CURLE_OPERATION_TIMEDOUT);
    }
    if (interrupt == nullptr || own.state == Transfer::State::Done) continue;
    if (system_clock().steady() - polled < kInterruptInterval) continue;
    poll(*interrupt);
    polled = system_clock().steady();
  }
  hand_over();
  return own.code;
}

void SharedMulti::poll(InterruptCheck& interrupt) {
  hand_over();
  mutex_.unlock();
  (void)interrupt.poll();
  mutex_.lock();
}

std::size_t SharedMulti::max_transfers() {
  const MutexLock lock(mutex_);
  return multiplexing_ == Multiplexing::Available ? kMaxStreams : kMaxConnections;
}

void SharedMulti::drive(Transfer& own, std::chrono::nanoseconds longest) {
  const auto start = system_clock().steady();
  driven_ = true;
  while (true) {
    drive_once(own);
    const auto left = longest - (system_clock().steady() - start);
    if (own.state == Transfer::State::Done || left <= std::chrono::nanoseconds::zero()) break;
    mutex_.unlock();
    wait_for_data(left);
    mutex_.lock();
  }
  driven_ = false;
}

void SharedMulti::drive_once(Transfer& own) {
  // Linked lists, which need no memory: a driver that throws would leave the other callers waiting.
  Transfer* queued = nullptr;
  Transfer* abandoned = nullptr;
  for (auto each = transfers_.rbegin(); each != transfers_.rend(); ++each) {
    Transfer& transfer = **each;
    if (transfer.state == Transfer::State::Abandoned) {
      transfer.outcome = transfer.code;
      push(abandoned, transfer);
    } else if (transfer.state == Transfer::State::Queued) {
      transfer.state = Transfer::State::Running;
      push(queued, transfer);
    }
  }
  mutex_.unlock();
  Transfer* ended = nullptr;
  while (Transfer* const transfer = pop(queued)) {
    if (curl_->multi_add_handle(multi_, transfer->handle) == CURLM_OK) continue;
    transfer->outcome = CURLE_FAILED_INIT;
    push(ended, *transfer);
  }
  while (Transfer* const transfer = pop(abandoned)) {
    // Over HTTP/2, libcurl keeps the connection. The process behind it may be stopped although its host still confirms
    // packets, so libcurl closes it, unless other transfers use it.
    (void)curl_->easy_setopt(transfer->handle, CURLOPT_FORBID_REUSE, 1L);
    (void)curl_->multi_remove_handle(multi_, transfer->handle);
    push(ended, *transfer);
  }
  int running = 0;
  const bool performed = curl_->multi_perform(multi_, &running) == CURLM_OK;
  const Multiplexing seen = read_messages(ended);
  mutex_.lock();
  if (seen != Multiplexing::Unknown) multiplexing_ = seen;
  while (Transfer* const transfer = pop(ended)) finish(*transfer, transfer->outcome);
  if (!performed && own.state == Transfer::State::Running) abandon(own, CURLE_OUT_OF_MEMORY);
}

SharedMulti::Multiplexing SharedMulti::read_messages(Transfer*& ended) {
  Multiplexing seen = Multiplexing::Unknown;
  int left = 0;
  while (const CURLMsg* const said = curl_->multi_info_read(multi_, &left)) {
    if (said->msg != CURLMSG_DONE) continue;
    CURL* const handle = said->easy_handle;
    const CURLcode code = said->data.result;
    Transfer* transfer = nullptr;
    long version = 0;
    (void)curl_->easy_getinfo(handle, CURLINFO_PRIVATE, &transfer);
    (void)curl_->easy_getinfo(handle, CURLINFO_HTTP_VERSION, &version);
    (void)curl_->multi_remove_handle(multi_, handle);
    if (version == CURL_HTTP_VERSION_2_0) seen = Multiplexing::Available;
    if (version == CURL_HTTP_VERSION_1_0 || version == CURL_HTTP_VERSION_1_1) seen = Multiplexing::Unavailable;
    transfer->outcome = code;
    push(ended, *transfer);
  }
  return seen;
}

void SharedMulti::push(Transfer*& list, Transfer& transfer) {
  transfer.next = list;
  list = &transfer;
}

SharedMulti::Transfer* SharedMulti::pop(Transfer*& list) {
  Transfer* const first = list;
  if (first != nullptr) list = first->next;
  return first;
}

void SharedMulti::wait_for_data(std::chrono::nanoseconds longest) {
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(std::min(longest, kMaxWait));
  curl_waitfd wakeup{.fd = wakeup_.get(), .events = CURL_WAIT_POLLIN, .revents = 0};
  int ready = 0;
  (void)curl_->multi_wait(multi_, &wakeup, 1, static_cast<int>(time.count()), &ready);
  if (wakeup.revents == 0) return;
  std::uint64_t count = 0;
  (void)!read(wakeup_.get(), &count, sizeof count);
}

void SharedMulti::wake_driver() {
  const std::uint64_t one = 1;
  while (write(wakeup_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void SharedMulti::abandon(Transfer& transfer, CURLcode code) {
  if (transfer.state == Transfer::State::Queued) return finish(transfer, code);
  transfer.state = Transfer::State::Abandoned;
  transfer.code = code;
  if (driven_) wake_driver();
}

void SharedMulti::finish(Transfer& transfer, CURLcode code) {
  transfer.state = Transfer::State::Done;
  transfer.code = code;
  std::erase(transfers_, &transfer);
  transfer.changed.notify_one();
}

void SharedMulti::hand_over() {
  if (driven_) return;
  const auto next = std::find_if(transfers_.begin(), transfers_.end(), [](Transfer* one) { return one->waiting; });
  if (next != transfers_.end()) (*next)->changed.notify_one();
}

}  // namespace kiln
