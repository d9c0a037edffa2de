#include "ledger/merged_files.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <system_error>

#include "config/suggest.hpp"
#include "ledger/artifact_files.hpp"
#include "system/denied.hpp"
#include "system/there.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

/// "COUNT files of slides HOW, the first is WHAT".
std::string line_of_files(std::size_t count, const char* one, const char* several, const std::string& first) {
  if (count == 1) return std::string("1 file of slides ") + one + ": " + first;
  return std::to_string(count) + " files of slides " + several + ", the first: " + first;
}

}  // namespace

void tell_absent(LedgerView& view, const fs::path& out, MergeResult& result) {
  std::size_t missing = 0, changed = 0, unseen = 0, links = 0;
  std::string first_missing, first_changed, first_unseen, first_link;
  const auto count = [](std::size_t& files, std::string& first, const std::string& what) {
    if (files++ == 0) first = one_line(what);
  };
  view.for_each([&](const SlideResult& slide) {
    for (const Artifact& artifact : slide.artifacts) {
      const fs::path file = (out / artifact.file).lexically_normal();
      int code = 0;
      const std::string fault = fault_of(file, artifact, code);
      if (fault.empty()) {
        links += links_among(out, {artifact}, first_link);
        continue;
      }
      ++result.absent;
      result.absent_bytes += artifact.bytes;
      if (code == 0) {
        count(changed, first_changed, fault);
      } else if (says_absent(std::error_code(code, std::generic_category()))) {
        count(missing, first_missing, file.string());
      } else {
        count(unseen, first_unseen, file.string() + ": " + reason_of(code, file));
      }
    }
  });
  constexpr const char* remedy =
      "; the command of its folder makes it again if its slide is there, and then merge again";
  if (missing > 0) {
    result.warnings.push_back(line_of_files(missing, "isn't there", "aren't there", first_missing) + remedy);
  }
  if (changed > 0) {
    result.warnings.push_back(
        line_of_files(changed, "isn't as it was made", "aren't as they were made", first_changed) + remedy);
  }
  // Nothing says that they aren't there.
  if (unseen > 0) {
    result.warnings.push_back(line_of_files(unseen, "can't be looked at", "can't be looked at", first_unseen));
  }
  if (links > 0) result.warnings.push_back(line_of_links(links, first_link));
}

RunResult run_of(SlideSource& slides) {
  RunResult run;
  std::set<std::string> backends;
  slides.for_each([&](const SlideResult& slide) {
    run.seconds += slide.seconds;
    if (slide.done) backends.insert(slide.backend);
  });
  for (const std::string& backend : backends) run.backend += (run.backend.empty() ? "" : "+") + backend;
  return run;
}

}  // namespace slidestream
