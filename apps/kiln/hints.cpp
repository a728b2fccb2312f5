#include "apps/kiln/hints.hpp"

namespace kiln::cli {
namespace {

std::string_view hint_of_damage(std::string_view command) {
  if (command.starts_with("kiln cache")) return "'kiln cache verify' finds what is damaged and removes it";
  if (command.starts_with("kiln bundle") || command.starts_with("kiln warm")) {
    return "fetch or build the bundle again; 'kiln bundle verify' says whether one is whole";
  }
  if (command.starts_with("kiln remote")) {
    return "'kiln remote verify --contents' finds what is damaged, and 'kiln remote disown KEY' withdraws it";
  }
  if (command.starts_with("kiln audit") || command.starts_with("kiln health") || command.starts_with("kiln report")) {
    return "record the trace again, with KILN_TRACE, and let the program end by itself";
  }
  return "make the file again; of a cache, 'kiln cache verify' finds what is damaged and removes it";
}

}  // namespace

bool names_next_step(std::string_view message) {
  return message.find("; ") != std::string_view::npos || message.find("'kiln ") != std::string_view::npos;
}

std::string_view hint_for(Code code, std::string_view command) {
  switch (code) {
    case Code::InvalidArgument: return "'--help' behind the command says what it takes";
    case Code::Unsupported: return "'kiln doctor' says what this machine and this build of kiln can do";
    case Code::Unavailable: return "'kiln doctor' says what is missing here and how to get it";
    case Code::CompileFailed:
      return "mend what the compiler names above; nothing of it was kept, and nothing has to be cleared";
    case Code::Refused: return "'kiln config show' says which setting forbids it, and who set it";
    case Code::Io:
      return command.starts_with("kiln remote") ? "'kiln remote stats' says whether the store answers"
                                                : "see that the path is right and that you may read or write there";
    case Code::Corrupt: return hint_of_damage(command);
    case Code::TimedOut:
      return "try again; where that does not help, 'kiln doctor' asks every server and says how long it took";
    case Code::Cancelled: return "run it again: what was done until then is kept";
    case Code::LoadRefused: return "compile for what is here: 'kiln doctor' names the devices and their architectures";
    case Code::Capturing: return "get the kernel before the capture begins";
    case Code::Internal:
      return "this is a bug in kiln: please report it, with 'kiln version' and the output of --verbose";
  }
  return "'kiln doctor' looks at all of it";
}

}  // namespace kiln::cli
