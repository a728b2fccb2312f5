// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox_filter.hpp"

#include <asm/ioctls.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/sanitized.hpp"

namespace kiln {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr std::uint32_t kOtherNumbers = 0x40000000;  // first call number of the x32 interface
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr std::uint32_t kOtherNumbers = 0;
#else
constexpr std::uint32_t kArchitecture = 0;  // no filter
constexpr std::uint32_t kOtherNumbers = 0;
#endif

// Numbers that older kernel headers lack. From 424 on they are the same on every architecture.
enum Newer : long {
  kPidfdSendSignal = 424,
  kIoUringSetup = 425,
  kIoUringEnter = 426,
  kIoUringRegister = 427,
  kOpenTree = 428,
  kMoveMount = 429,
  kFsopen = 430,
  kFsconfig = 431,
  kFsmount = 432,
  kFspick = 433,
  kClone3 = 435,
  kPidfdGetfd = 438,
  kProcessMadvise = 440,
  kMountSetattr = 442,
  kQuotactlFd = 443,
  kProcessMrelease = 448,
  kFchmodat2 = 452,
  kSetxattrat = 463,
  kRemovexattrat = 466,
  kOpenTreeAttr = 467,
  kFileSetattr = 469,
};

constexpr long kDenied[] = {
    // The network, and other processes' sockets. The channel to the host is open already.
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    // Memory, descriptors and messages of other processes.
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    kPidfdGetfd,
    kProcessMadvise,
    kProcessMrelease,
    SYS_migrate_pages,
    SYS_move_pages,
    SYS_shmget,
    SYS_shmat,
    SYS_msgget,
    SYS_semget,
    SYS_mq_open,
    SYS_mq_unlink,
    // Signals by calls other than kill and tgkill.
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    kPidfdSendSignal,
    // Mounts and namespaces.
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    kOpenTree,
    kMoveMount,
    kFsopen,
    kFsconfig,
    kFsmount,
    kFspick,
    kMountSetattr,
    kOpenTreeAttr,
    // Files by handle, which bypasses the permissions of their parent directories.
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_fanotify_mark,
    // File attributes, which Landlock does not restrict.
    SYS_fchmod,
    SYS_fchmodat,
    kFchmodat2,
    SYS_fchown,
    SYS_fchownat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    kSetxattrat,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    kRemovexattrat,
    SYS_utimensat,
    kFileSetattr,
    // Users and groups.
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_setgroups,
    SYS_capset,
    // Kernel interfaces with a history of vulnerabilities, or for administrators.
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    kIoUringSetup,
    kIoUringEnter,
    kIoUringRegister,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_quotactl,
    kQuotactlFd,
    SYS_acct,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_vhangup,
    SYS_personality,
#if defined(__x86_64__)
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_iopl,
    SYS_ioperm,
    SYS_kexec_file_load,
    SYS_modify_ldt,
#endif
};

// Allowed if the first argument, or the second one for the last list, is this process.
constexpr long kFirstIsSelf[] = {SYS_kill, SYS_tgkill};
constexpr long kFirstIsSelfOrZero[] = {SYS_prlimit64, SYS_sched_setaffinity, SYS_sched_setparam, SYS_sched_setscheduler,
                                       SYS_sched_setattr};
constexpr long kSecondIsSelfOrZero[] = {SYS_setpriority, SYS_ioprio_set};

constexpr std::uint32_t kNamespaces = 0x7e020000;  // CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
constexpr std::uint32_t kErrorOf = SECCOMP_RET_ERRNO;

// A BPF program: a list of rules. Each rule either decides or leaves the call's number in the accumulator.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    if_equal(kArchitecture, 1, 0);
    finish(kErrorOf | EPERM);
    load_number();
    if (kOtherNumbers == 0) return;
    add({BPF_JMP | BPF_JGE | BPF_K, 0, 1, kOtherNumbers});
    finish(kErrorOf | EPERM);
  }
  void deny(long number, std::uint32_t error = EPERM) {
    if_equal(static_cast<std::uint32_t>(number), 0, 1);
    finish(kErrorOf | error);
  }
  // The kernel uses only the lower half of an argument that is a process id, flags or a request.
  void allow_only(long number, unsigned argument, std::initializer_list<std::uint32_t> values) {
    const auto count = static_cast<std::uint8_t>(values.size());
    if_equal(static_cast<std::uint32_t>(number), 0, static_cast<std::uint8_t>(count + 3));
    load_argument(argument);
    std::uint8_t left = count;
    for (const std::uint32_t value : values) if_equal(value, left--, 0);
    finish(kErrorOf | EPERM);
    finish(SECCOMP_RET_ALLOW);
  }
  void deny_value(long number, unsigned argument, std::uint32_t value) {
    if_equal(static_cast<std::uint32_t>(number), 0, 4);
    load_argument(argument);
    if_equal(value, 0, 1);
    finish(kErrorOf | EPERM);
    load_number();
  }
  // Denies the call if a bit of `without` is set, or if no bit of `with` is set.
  void require_bits(long number, unsigned argument, std::uint32_t with, std::uint32_t without) {
    if_equal(static_cast<std::uint32_t>(number), 0, 5);
    load_argument(argument);
    add({BPF_JMP | BPF_JSET | BPF_K, 1, 0, without});
    add({BPF_JMP | BPF_JSET | BPF_K, 1, 0, with});
    finish(kErrorOf | EPERM);
    finish(SECCOMP_RET_ALLOW);
  }
  bool install() {
    finish(SECCOMP_RET_ALLOW);
    const sock_fprog program{static_cast<unsigned short>(rules_.size()), rules_.data()};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
  }

 private:
  void add(const sock_filter& rule) { rules_.push_back(rule); }
  void load(std::size_t offset) { add({BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)}); }
  void load_number() { load(offsetof(seccomp_data, nr)); }
  void load_argument(unsigned index) {  // the lower half; both architectures are little-endian
    load(offsetof(seccomp_data, args) + index * sizeof(std::uint64_t));
  }
  void if_equal(std::uint32_t value, std::uint8_t skip_if, std::uint8_t skip_else) {
    add({BPF_JMP | BPF_JEQ | BPF_K, skip_if, skip_else, value});
  }
  void finish(std::uint32_t action) { add({BPF_RET | BPF_K, 0, 0, action}); }

  std::vector<sock_filter> rules_;
};

}  // namespace

bool has_system_call_filter() {
  std::uint32_t action = SECCOMP_RET_ERRNO;
  return kArchitecture != 0 && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

bool filter_system_calls(bool may_run_programs) {
  if (kArchitecture == 0) return false;
  const auto self = static_cast<std::uint32_t>(getpid());
  Filter filter;
  for (const long number : kDenied) filter.deny(number);
  if (!kIsSanitized) filter.deny(SYS_ptrace);
  for (const long number : kFirstIsSelf) filter.allow_only(number, 0, {self});
  for (const long number : kFirstIsSelfOrZero) filter.allow_only(number, 0, {0, self});
  for (const long number : kSecondIsSelfOrZero) filter.allow_only(number, 1, {0, self});
  filter.deny_value(SYS_ioctl, 1, TIOCSTI);
  filter.deny_value(SYS_ioctl, 1, TIOCLINUX);
  filter.deny_value(SYS_prctl, 0, PR_SET_PDEATHSIG);  // the worker would outlive its host
  // A filter cannot read the flags of clone3. Without clone3 the C library uses clone.
  filter.deny(kClone3, ENOSYS);
  const bool may_fork = may_run_programs || kIsSanitized;
  filter.require_bits(SYS_clone, 0, may_fork ? ~std::uint32_t{0} : CLONE_THREAD, kNamespaces);
  if (!may_run_programs) {
    filter.deny(SYS_execve);
    filter.deny(SYS_execveat);
  }
#if defined(__x86_64__)
  if (!may_fork) filter.deny(SYS_fork);
  if (!may_fork) filter.deny(SYS_vfork);
#endif
  return filter.install();
}

}  // namespace kiln
