// SPDX-License-Identifier: Apache-2.0
#include "gil.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace kiln::python {
namespace {

std::atomic<bool> closed{false};
std::atomic<int> coming_back{0};  // threads between the check of `closed` and the acquisition of the GIL

// Maximum time that the end of the interpreter waits for them.
constexpr std::chrono::seconds kMaxWait{2};
constexpr double kMaxSeconds = 1e8;
// Minimum time between two runs of signal handlers during a wait: each run acquires the GIL.
constexpr std::chrono::milliseconds kBetweenSignals{30};

// Announces that a thread acquires the GIL. Returns false if that is blocked.
bool begin_to_come_back() {
  coming_back.fetch_add(1, std::memory_order_seq_cst);
  if (!closed.load(std::memory_order_seq_cst)) return true;
  coming_back.fetch_sub(1, std::memory_order_seq_cst);
  return false;
}

void has_come_back() { coming_back.fetch_sub(1, std::memory_order_seq_cst); }

// The thread that finalizes the interpreter is the one that set `closed`. It can still acquire the GIL.
thread_local bool closed_it = false;

void come_back(PyThreadState* state) {
  if (closed_it) {
    PyEval_RestoreThread(state);
    return;
  }
  while (!begin_to_come_back()) pause();
  PyEval_RestoreThread(state);
  has_come_back();
}

}  // namespace

GilRelease::GilRelease() : state_(PyEval_SaveThread()) {}
GilRelease::~GilRelease() { come_back(state_); }

bool GilRelease::run_signal_handlers() {
  come_back(state_);
  const bool fine = PyErr_CheckSignals() == 0;
  state_ = PyEval_SaveThread();
  return fine;
}

GilAcquire::GilAcquire() {
  if (!begin_to_come_back()) return;
  state_ = PyGILState_Ensure();
  has_come_back();
}

GilAcquire::~GilAcquire() {
  if (state_) PyGILState_Release(*state_);
}

std::shared_ptr<nb::object> keep_for_threads(nb::object object) {
  const auto end = [](nb::object* kept) {
    const GilAcquire held;
    if (held) delete kept;
  };
  return std::shared_ptr<nb::object>(new nb::object(std::move(object)), end);
}

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

std::function<bool()> signal_check(GilRelease& released, bool& raised) {
  if (!is_main_thread()) return {};
  using Clock = std::chrono::steady_clock;
  return [&released, &raised, next = Clock::now() + kBetweenSignals]() mutable {
    if (Clock::now() < next) return true;
    raised = !released.run_signal_handlers();
    next = Clock::now() + kBetweenSignals;
    return !raised;
  };
}

void block_gil_reacquire() {
  closed_it = true;
  closed.store(true, std::memory_order_seq_cst);
  const GilRelease released;
  const auto start = std::chrono::steady_clock::now();
  while (coming_back.load(std::memory_order_seq_cst) > 0 && std::chrono::steady_clock::now() - start < kMaxWait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void allow_gil_reacquire() {
  coming_back.store(0, std::memory_order_seq_cst);
  closed.store(false, std::memory_order_seq_cst);
}

PythonCaller::PythonCaller() {
  PyFrameObject* const frame = PyEval_GetFrame();
  if (frame == nullptr) return;
  const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  file_ = nb::getattr(code, "co_filename", nb::none());
  const char* const text = PyUnicode_Check(file_.ptr()) ? PyUnicode_AsUTF8AndSize(file_.ptr(), nullptr) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    return;
  }
  caller_ = Caller{text, PyFrame_GetLineNumber(frame)};
}

std::chrono::nanoseconds limit_of(std::optional<double> seconds) {
  // A timeout that is not a number counts as 0.
  const double wanted = seconds ? *seconds : kMaxSeconds;
  if (!(wanted > 0)) return std::chrono::nanoseconds(0);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(wanted, kMaxSeconds)));
}

}  // namespace kiln::python
