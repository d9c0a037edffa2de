#include "system/process_state.hpp"

#include <signal.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

namespace slidestream {

/// Fields 3, 20 and 22. The second field may hold blanks and brackets.
ProcessState state_of(std::int64_t pid) {
  ProcessState found;
  std::string stat;
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::getline(in, stat);
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return found;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  fields >> found.state;
  for (int field = 4; field < 20; ++field) fields >> skipped;
  fields >> found.threads >> skipped >> found.start;
  return found;
}

bool has_ended(std::int64_t pid, const ProcessState& state) {
  if (::kill(static_cast<::pid_t>(pid), 0) != 0 && errno == ESRCH) return true;
  return (state.state == 'Z' || state.state == 'X') && state.threads <= 1;
}

bool has_ended(std::int64_t pid) { return has_ended(pid, state_of(pid)); }

}  // namespace slidestream
