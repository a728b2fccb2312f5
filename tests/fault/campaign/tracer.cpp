// SPDX-License-Identifier: Apache-2.0
#include "fault/campaign/tracer.hpp"

#include <elf.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <sstream>

#include "fault/campaign/calls.hpp"

namespace kiln::test {
namespace {

using Clock = std::chrono::steady_clock;

// Stops the child at the calls with these numbers, or at all calls if the set is empty. Other calls run at full speed,
// so a fault costs milliseconds instead of the tens of milliseconds under strace.
bool filter_calls(const std::set<long>& numbers) {
  std::vector<sock_filter> filter;
  const auto after = static_cast<unsigned char>(numbers.size());
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  unsigned char left = after;
  for (const long number : numbers) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), left, 0));
    --left;
  }
  if (!numbers.empty()) filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Waits until this thread stops. Returns false if it ended instead.
bool wait_for_stop(pid_t thread) {
  int status = 0;
  pid_t which = -1;
  do {
    which = waitpid(thread, &status, __WALL);
  } while (which < 0 && errno == EINTR);  // the timer's signal
  return which == thread && WIFSTOPPED(status);
}

unsigned long entry_of(pid_t process) {
  const int file = open(("/proc/" + std::to_string(process) + "/auxv").c_str(), O_RDONLY | O_CLOEXEC);
  unsigned long found = 0;
  Elf64_auxv_t pair;
  while (file >= 0 && read(file, &pair, sizeof pair) == sizeof pair) {
    if (pair.a_type == AT_ENTRY) found = pair.a_un.a_val;
  }
  if (file >= 0) close(file);
  return found;
}

std::string text_at(pid_t thread, unsigned long address) {
  char text[200] = {};
  const iovec here{text, sizeof text - 1};
  // Reads up to the end of the page, because the next page may not be mapped.
  const iovec there{reinterpret_cast<void*>(address), std::min(sizeof text - 1, 4096 - address % 4096)};
  return process_vm_readv(thread, &here, 1, &there, 1, 0) > 0 ? text : "?";
}

// Only a wait on a futex can be interrupted. If another operation fails, the C library rightly aborts.
bool waits(const user_regs_struct& registers) {
  const auto operation = static_cast<int>(registers.rsi) & FUTEX_CMD_MASK;
  return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
}

std::string described(pid_t thread, const user_regs_struct& registers) {
  const std::string name = call_name(static_cast<long>(registers.orig_rax));
  std::ostringstream text;
  text << name;
  if (const int place = path_argument(name); place >= 0) {
    text << " \"" << text_at(thread, place == 0 ? registers.rdi : registers.rsi) << '"';
  } else {
    text << '(' << static_cast<int>(registers.rdi) << ')';
  }
  return std::move(text).str();
}

}  // namespace

bool Tracer::start() {
  if (options_.injected) {
    std::istringstream names(options_.injected->call);
    for (std::string name; std::getline(names, name, '+');) {
      if (call_number(name) < 0) return false;
      numbers_.insert(call_number(name));
    }
  }
  began_ = Clock::now();
  program_ = fork();
  if (program_ == 0) {
    std::vector<char*> words;
    for (const std::string& word : options_.command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);  // until the tracer has set its options: an untraced SECCOMP_RET_TRACE call fails
    if (filter_calls(numbers_)) execvp(words[0], words.data());
    _exit(127);
  }
  if (program_ < 0 || !wait_for_stop(program_)) return false;
  ptrace(PTRACE_SETOPTIONS, program_, nullptr,
         PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
             PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
  process_of_[program_] = program_;
  processes_[program_] = {};
  ptrace(PTRACE_CONT, program_, nullptr, nullptr);
  return true;
}

Traced Tracer::run() {
  // Wakes the wait below, because there is no wait with a timeout for traced processes.
  struct sigaction wake {};
  wake.sa_handler = [](int) {};
  sigaction(SIGALRM, &wake, nullptr);
  const itimerval often{{0, 100'000}, {0, 100'000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  if (!start()) return result_;
  while (!process_of_.empty()) {
    int status = 0;
    const pid_t thread = waitpid(-1, &status, __WALL);
    look_at_the_time();
    if (thread < 0 && errno == EINTR) continue;
    if (thread < 0) break;
    if (WIFSTOPPED(status)) {
      stopped(thread, status);
    } else {
      ended(thread, status);
    }
  }
  result_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  return result_;
}

void Tracer::look_at_the_time() {
  const auto now = Clock::now();
  const bool over = program_ended_ != Clock::time_point() && now - program_ended_ > options_.outlive;
  if (over && result_.strays == 0) {
    result_.strays = static_cast<int>(processes_.size());
    end_all();
  }
  if (now - began_ > options_.timeout && !result_.late) {
    result_.late = true;
    end_all();
  }
}

void Tracer::end_all() {
  for (auto& [id, process] : processes_) {
    process.killed = true;
    kill(id, SIGKILL);
  }
}

void Tracer::ended(pid_t thread, int status) {
  early_.erase(thread);
  on_way_.erase(thread);
  const auto process = processes_.find(thread);  // a process ends with its first thread
  if (process != processes_.end()) {
    if (WIFSIGNALED(status) && !process->second.killed) ++result_.crashed;
    processes_.erase(process);
  }
  process_of_.erase(thread);
  if (thread != program_) return;
  result_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  program_ended_ = Clock::now();
}

void Tracer::stopped(pid_t thread, int status) {
  const int signal = WSTOPSIG(status);
  const int event = status >> 16;
  if (!process_of_.contains(thread)) {
    early_.insert(thread);
    return;
  }
  int passed_on = 0;
  bool until_made = false;
  unsigned long message = 0;
  if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK) {
    ptrace(PTRACE_GETEVENTMSG, thread, nullptr, &message);
    born(thread, static_cast<pid_t>(message), event != PTRACE_EVENT_CLONE);
  } else if (event == PTRACE_EVENT_EXEC) {
    replaced(thread);
  } else if (event == PTRACE_EVENT_SECCOMP) {
    until_made = called(thread);
  } else if (signal == (SIGTRAP | 0x80)) {
    made(thread);
  } else if (event == 0 && !(signal == SIGTRAP && at_its_entry(thread, process_of(thread)))) {
    passed_on = signal;
  }
  ptrace(until_made ? PTRACE_SYSCALL : PTRACE_CONT, thread, nullptr, passed_on);
}

void Tracer::born(pid_t thread, pid_t child, bool is_process) {
  process_of_[child] = is_process ? child : process_of_[thread];
  if (is_process) {
    Process made;
    made.number = ++newest_;
    made.began = process_of(thread).began;
    processes_[child] = made;
  }
  if (early_.erase(child) == 0 && !wait_for_stop(child)) {  // killed before it started
    process_of_.erase(child);
    processes_.erase(child);
    return;
  }
  ptrace(PTRACE_CONT, child, nullptr, nullptr);
}

void Tracer::replaced(pid_t process) {
  Process& it = process_of(process);
  it.began = false;
  it.entry = entry_of(process);
  it.covered = ptrace(PTRACE_PEEKTEXT, process, it.entry, nullptr);
  ptrace(PTRACE_POKETEXT, process, it.entry, (it.covered & ~0xffL) | 0xcc);
}

bool Tracer::at_its_entry(pid_t thread, Process& process) {
  user_regs_struct registers;
  if (process.began || ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return false;
  if (registers.rip != process.entry + 1) return false;
  ptrace(PTRACE_POKETEXT, thread, process.entry, process.covered);
  registers.rip = process.entry;
  ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
  process.began = true;
  if (options_.files && process.number == 0) {
    const rlimit limit{*options_.files, *options_.files};
    prlimit(thread, RLIMIT_NOFILE, &limit, nullptr);
  }
  return true;
}

// Returns whether the thread must be stopped again after the call.
bool Tracer::called(pid_t thread) {
  Process& process = process_of(thread);
  user_regs_struct registers;
  if (!process.began || ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return false;
  const auto number = static_cast<long>(registers.orig_rax);
  if (number == SYS_futex && !waits(registers)) return false;
  if (!options_.injected) {
    result_.calls.push_back({process.number, call_name(number), ++process.seen[number], described(thread, registers)});
    return false;
  }
  const Injected& injected = *options_.injected;
  const int past = ++process.seen_of_injected - injected.occurrence;
  const bool hit =
      injected.every != 0 ? past >= 0 && past % injected.every == 0 : past == 0 && process.number == injected.process;
  if (!hit) return false;
  ++result_.met;
  result_.where = described(thread, registers);
  // close releases the descriptor regardless of its result.
  const bool late = injected.kind == Injected::Kind::Late || number == SYS_close;
  if (injected.kind == Injected::Kind::Kill || (late && injected.kind != Injected::Kind::Short)) {
    on_way_[thread] = {registers.rdi, registers.rdx, injected.kind != Injected::Kind::Kill};
    return true;
  }
  const bool altered = injected.kind == Injected::Kind::Short || number == SYS_brk;
  if (altered) on_way_[thread] = {registers.rdi, registers.rdx, false};
  if (injected.kind == Injected::Kind::Short) {
    registers.rdx = (registers.rdx + 1) / 2;
  } else if (number == SYS_brk) {
    registers.rdi = 0;  // brk has no errors: it returns the end of the heap, which is then unchanged
  } else {
    registers.orig_rax = static_cast<unsigned long>(-1);
    registers.rax = static_cast<unsigned long>(-injected.error);
  }
  ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
  return altered;
}

void Tracer::made(pid_t thread) {
  const auto on_way = on_way_.extract(thread);
  if (!on_way) return;
  const Injected& injected = *options_.injected;
  if (injected.kind == Injected::Kind::Kill) {
    process_of(thread).killed = true;
    kill(process_of_[thread], SIGKILL);
    return;
  }
  user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return;
  // The caller relies on unchanged argument registers.
  registers.rdi = on_way.mapped().first;
  registers.rdx = on_way.mapped().third;
  if (on_way.mapped().says_error) registers.rax = static_cast<unsigned long>(-injected.error);
  ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
}

}  // namespace kiln::test
