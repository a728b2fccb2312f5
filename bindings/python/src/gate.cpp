#include "gate.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace kiln::python {
namespace {

std::atomic<bool> closed{false};
std::atomic<int> coming_back{0};  // threads between asking whether the gate is open and holding the interpreter

// How long the end of the interpreter waits for them at most.
constexpr std::chrono::seconds kLongestWait{2};
constexpr double kMostSeconds = 1e8;

// Says that a thread comes back, unless the gate is closed.
bool begin_to_come_back() {
  coming_back.fetch_add(1, std::memory_order_seq_cst);
  if (!closed.load(std::memory_order_seq_cst)) return true;
  coming_back.fetch_sub(1, std::memory_order_seq_cst);
  return false;
}

void has_come_back() { coming_back.fetch_sub(1, std::memory_order_seq_cst); }

// The thread that ends the interpreter is the one that closed the gate, and it may go in and out.
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

Released::Released() : state_(PyEval_SaveThread()) {}
Released::~Released() { come_back(state_); }

bool Released::signals_are_fine() {
  come_back(state_);
  const bool fine = PyErr_CheckSignals() == 0;
  state_ = PyEval_SaveThread();
  return fine;
}

Held::Held() {
  if (!begin_to_come_back()) return;
  state_ = PyGILState_Ensure();
  has_come_back();
}

Held::~Held() {
  if (state_) PyGILState_Release(*state_);
}

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

void close_gate() {
  closed_it = true;
  closed.store(true, std::memory_order_seq_cst);
  const Released released;
  const auto start = std::chrono::steady_clock::now();
  while (coming_back.load(std::memory_order_seq_cst) > 0 && std::chrono::steady_clock::now() - start < kLongestWait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void reopen_gate() {
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
  // A limit that is not a number is none that one could wait for.
  const double wanted = seconds ? *seconds : kMostSeconds;
  if (!(wanted > 0)) return std::chrono::nanoseconds(0);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(wanted, kMostSeconds)));
}

}  // namespace kiln::python
