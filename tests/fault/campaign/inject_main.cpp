// SPDX-License-Identifier: Apache-2.0
// Runs a program and fails one of its system calls, or kills it right after one; or records its calls.
//   fault_inject [--limit SECONDS] [--outlive SECONDS] [--report FILE] [--files N] [--fault PROCESS:CALL:N:WHAT]
//                -- PROGRAM ARGUMENT…
// WHAT is an error (EIO), late-EIO (the call is made but reports the error), short (half of the bytes) or kill. CALL
// can be several names (read+write). N can be N/M: the Nth and each Mth after it, in every process. --files limits the
// descriptors. Returns the exit code of the program, or 125 if it could not be run this way. The report has a line for
// each event and, without a fault, one for each call.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "fault/campaign/calls.hpp"
#include "fault/campaign/tracer.hpp"

namespace {

using kiln::test::Injected;

bool understood(const std::string& text, Injected& injected) {
  std::istringstream words(text);
  std::string process;
  std::string occurrence;
  std::string what;
  std::getline(words, process, ':');
  std::getline(words, injected.call, ':');
  std::getline(words, occurrence, ':');
  std::getline(words, what);
  injected.process = std::atoi(process.c_str());
  injected.occurrence = std::atoi(occurrence.c_str());
  if (const auto slash = occurrence.find('/'); slash != std::string::npos) {
    injected.every = std::atoi(occurrence.c_str() + slash + 1);
  }
  if (what == "kill") {
    injected.kind = Injected::Kind::Kill;
  } else if (what == "short") {
    injected.kind = Injected::Kind::Short;
  } else {
    const bool late = what.starts_with("late-");
    injected.kind = late ? Injected::Kind::Late : Injected::Kind::Error;
    injected.error = kiln::test::error_number(late ? what.substr(5) : what);
    if (injected.error == 0) return false;
  }
  return injected.occurrence > 0;
}

}  // namespace

int main(int count, char** arguments) {
  kiln::test::Tracer::Options options;
  std::string report;
  int i = 1;
  for (; i + 1 < count && std::string(arguments[i]) != "--"; i += 2) {
    const std::string option = arguments[i];
    const std::string value = arguments[i + 1];
    if (option == "--limit") {
      options.timeout = std::chrono::seconds(std::atoi(value.c_str()));
    } else if (option == "--outlive") {
      options.outlive = std::chrono::seconds(std::atoi(value.c_str()));
    } else if (option == "--files") {
      options.files = static_cast<unsigned>(std::atoi(value.c_str()));
    } else if (option == "--report") {
      report = value;
    } else if (option == "--fault" && understood(value, options.injected.emplace())) {
      continue;
    } else {
      std::cerr << "not understood: " << option << ' ' << value << '\n';
      return 125;
    }
  }
  for (++i; i < count; ++i) options.command.emplace_back(arguments[i]);
  if (options.command.empty()) return 125;
  const kiln::test::Traced traced = kiln::test::Tracer(std::move(options)).run();
  std::ofstream file;
  if (!report.empty()) file.open(report);
  std::ostream& out = report.empty() ? std::cerr : file;
  out << "exit " << traced.exit_code << "\nseconds " << traced.seconds << "\nlate " << traced.late << "\nstrays "
      << traced.strays << "\ncrashed " << traced.crashed << "\nmet " << traced.met << "\nwhere " << traced.where
      << '\n';
  for (const kiln::test::Call& call : traced.calls) {
    out << "call " << call.process << ' ' << call.name << ' ' << call.occurrence << ' ' << call.text << '\n';
  }
  return traced.exit_code < 0 ? 125 : traced.exit_code;
}
