#pragma once

#include <string>

#include "base/words.hpp"
#include "runtime/trace_reader.hpp"

namespace kiln::report {

/// What the page has a colour for.
enum class Mark : unsigned char { Request, Wait, Find, Compile, Load, Launch, Copy, Memory, Work, Trouble, Other };
constexpr unsigned kMarks = static_cast<unsigned>(Mark::Other) + 1;
/// For style sheets and scripts.
const char* to_string(Mark mark);
/// For the legend.
const char* words_for(Mark mark);
Mark mark_of(Event::Kind kind);
/// `bundle refused`
std::string words_for(Event::Kind kind);

/// The thread's name, as far as the trace says it.
std::string thread_name(const audit::Trace& trace, std::uint64_t thread);
/// It is one of kiln's own threads, whose waiting holds nobody up.
bool is_background(const audit::Trace& trace, std::uint64_t thread);
/// The unit that an event is about, or the operation and stage.
std::string subject_of(const Event& event);
/// How long it took, as it was measured.
double length_of(const audit::RecordedEvent& event);

/// `0.12 ms`, `182 ms`, `2.31 s`, `4 min 10 s`
std::string time_words(double ms);

}  // namespace kiln::report
