#include "system/process_state.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

namespace slidestream {

namespace {

std::string line_of(const std::string& process) {
  std::string stat;
  std::ifstream in("/proc/" + process + "/stat");
  std::getline(in, stat);
  return stat;
}

/// Fields 3, 20 and 22. The second field may hold blanks and brackets.
ProcessState state_in(const std::string& stat) {
  ProcessState found;
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return found;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  fields >> found.state;
  for (int field = 4; field < 20; ++field) fields >> skipped;
  fields >> found.threads >> skipped >> found.start;
  return found;
}

}  // namespace

ProcessState state_of(std::int64_t pid) { return state_in(line_of(std::to_string(pid))); }

std::int64_t own_start() {
  const std::string stat = line_of("self");
  if (!stat.starts_with(std::to_string(::getpid()) + " ")) return 0;
  return state_in(stat).start;
}

bool has_ended(std::int64_t pid, const ProcessState& state) {
  if (::kill(static_cast<::pid_t>(pid), 0) != 0 && errno == ESRCH) return true;
  return (state.state == 'Z' || state.state == 'X') && state.threads <= 1;
}

bool has_ended(std::int64_t pid) { return has_ended(pid, state_of(pid)); }

}  // namespace slidestream
